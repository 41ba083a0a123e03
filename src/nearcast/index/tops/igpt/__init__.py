"""IGPT, the subscription index of Skype (section 5): a quadtree with an inverted file per leaf.

- `bounds`: every equation, lemma and theorem, one function each;
- `places`: distances to cells, outwards rounded;
- `state`: the arrays; `tree`, `lists`, `post`: how they are filled and kept up;
- `search`: Algorithm 1.
"""
