package surrogate.impersonation_test

import data.surrogate.impersonation

test_fifteen_minutes_for_everybody if {
	min(impersonation.max_ttl) == 900 with input as {"subject": {"roles": ["customer"]}}
}

test_five_for_some if {
	min(impersonation.max_ttl) == 300 with input as {"subject": {"roles": ["customer", "vip"]}}
}
