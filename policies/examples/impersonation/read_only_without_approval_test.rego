package surrogate.impersonation_test

import data.surrogate.impersonation

test_without_approval_it_only_reads if impersonation.read_only with input as {"stage": "exchange"}

test_with_approval_it_may_write if {
	not impersonation.read_only with input as {"stage": "exchange", "approval": {"id": "r1", "at": 1, "readOnly": false}}
}
