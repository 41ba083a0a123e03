"""DSkype: subscriptions for the best objects, dealt by id, place, words or prefixes of them."""
