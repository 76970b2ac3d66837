package surrogate.impersonation_test

import data.surrogate.impersonation

may_not_act(stage, actor_roles, subject_roles) if {
	"may_not_act_for_this_user" in impersonation.deny with input as {
		"stage": stage,
		"actor": {"id": "a1", "roles": actor_roles},
		"subject": {"id": "u1", "roles": subject_roles},
	}
}

test_support_acts_for_customers if not may_not_act("exchange", ["support"], ["customer"])

test_support_does_not_act_for_partners if may_not_act("exchange", ["support"], ["partner"])

test_a_customer_who_is_more_is_not_covered if may_not_act("exchange", ["support"], ["customer", "partner"])

test_a_lead_covers_both if not may_not_act("exchange", ["support", "support-lead"], ["customer", "partner"])

test_customers_do_not_act if may_not_act("exchange", ["customer"], ["customer"])

test_a_named_actor_is_looked_at_when_minting if may_not_act("mint", ["support"], ["partner"])

test_without_actor_minting_waits_and_exchange_is_refused if {
	customer := {"id": "u1", "roles": ["customer"]}
	not "may_not_act_for_this_user" in impersonation.deny with input as {"stage": "mint", "subject": customer}
	"may_not_act_for_this_user" in impersonation.deny with input as {"stage": "exchange", "subject": customer}
}
