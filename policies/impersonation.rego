# METADATA
# title: Impersonation decision
# description: |
#   Asked when a subject token is minted (`input.stage == "mint"`) and again when it is exchanged (`"exchange"`). This file allows
#   everything: who may act for whom is the integrator's decision until the operator makes it here. A decision is
#   `{"allow": bool, "reason"?: string, "scopes"?: [subset of input.scopes], "maxTtl"?: seconds}`.
# scope: package
# schemas:
#   - input: schema.impersonation
package surrogate.impersonation

# METADATA
# entrypoint: true
decision := {"allow": true}
