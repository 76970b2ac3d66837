# METADATA
# title: Impersonation decision
# description: |
#   Asked when a subject token is minted (`input.stage == "mint"`) and again when it is exchanged (`"exchange"`). By itself this file
#   allows everything: who may act for whom is the integrator's decision until the operator makes it here. To add a rule, write one more
#   file in this package that adds to `deny`, `withheld` or `max_ttl`; `examples/impersonation` holds some to begin with. The decision is
#   `{"allow": bool, "reason"?: string, "scopes"?: [subset of input.scopes], "maxTtl"?: seconds}`.
# scope: package
# schemas:
#   - input: schema.impersonation
package surrogate.impersonation

# METADATA
# entrypoint: true
decision := {"allow": false, "reason": objections[0]} if {
	count(objections) > 0
} else := object.union({"allow": true}, object.union(step_down, time_box)) if {
	input.version == 1
	count(deny) == 0
}

# Reasons to refuse, told to the caller; of several the first in alphabetical order.
deny contains "" if false

# Scopes of those asked for that are not granted. They count at exchange only.
withheld contains "" if false

# Seconds after which the token ends; the shortest counts. At exchange only.
max_ttl contains 0 if false

objections := sort(deny)

step_down := {"scopes": [scope | some scope in input.scopes; not scope in withheld]} if {
	count(withheld) > 0
} else := {}

time_box := {"maxTtl": min(max_ttl)} if {
	count(max_ttl) > 0
} else := {}
