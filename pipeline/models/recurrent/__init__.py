"""Recurrent attention models, with and without channels and an external memory (Xiong et al. 2017)."""
