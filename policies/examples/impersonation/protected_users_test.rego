package surrogate.impersonation_test

import data.surrogate.impersonation

protected_user(subject) if {
	"protected_user" in impersonation.deny with input as {"stage": "mint", "subject": subject}
}

test_an_administrator_is_protected if protected_user({"roles": ["buyer", "admin"], "customData": {}})

test_a_marked_user_is_protected if protected_user({"roles": [], "customData": {"protected": true}})

test_a_mark_that_is_no_boolean_protects if protected_user({"roles": [], "customData": {"protected": "yes"}})

test_others_are_not_protected if {
	not protected_user({"roles": ["administration"], "customData": {}})
	not protected_user({"roles": [], "customData": {"protected": false}})
}
