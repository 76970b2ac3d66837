/** An SQL expression: the `cnf` of a token whose row has this `jkt`; NULL when it is bound to no key. */
export const cnfOf = (jkt: string): string => `CASE WHEN ${jkt} IS NOT NULL THEN json_build_object('jkt', ${jkt}) END`
