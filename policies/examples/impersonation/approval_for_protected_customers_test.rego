package surrogate.impersonation_test

import data.surrogate.impersonation

is_asked(subject) if {
	"approval" in impersonation.require with input as {"stage": "mint", "subject": subject}
}

test_holders_of_the_role_are_asked if is_asked({"roles": ["customer", "protected-customer"], "customData": {}})

test_a_marked_customer_is_asked if is_asked({"roles": [], "customData": {"askFirst": true}})

test_a_mark_to_ask_that_is_no_boolean_asks if is_asked({"roles": [], "customData": {"askFirst": "yes"}})

test_others_are_not_asked if {
	not is_asked({"roles": ["customer"], "customData": {}})
	not is_asked({"roles": [], "customData": {"askFirst": false}})
}
