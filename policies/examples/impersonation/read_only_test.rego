package surrogate.impersonation_test

import data.surrogate.impersonation

scopes := ["openid", "read:orders", "write:orders", "readwrite"]

test_only_what_reads_is_left if {
	impersonation.withheld == {"write:orders", "readwrite"} with input as {"scopes": scopes, "actor": {"roles": ["support"]}}
}

test_without_actor_too if {
	impersonation.withheld == {"write:orders", "readwrite"} with input as {"scopes": scopes}
}

test_leads_may_write if {
	impersonation.withheld == set() with input as {"scopes": scopes, "actor": {"roles": ["support-lead"]}}
}
