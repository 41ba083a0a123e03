"""SSTD: objects that stay, searched as the paper does and as nearcast does."""
