"""What a target needs and will cost, before it runs; and what may go when it is done."""
