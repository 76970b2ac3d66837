import { type Query, statement } from '../../platform/database/database.ts'

/** What operators' rules are told of a person, beside the proofs. */
export interface RuleFacts {
  /** Names. */
  roles: string[]
  /** Ids. */
  organizations: string[]
  isDeviceKnown: boolean
  failures: number
}

const select = statement(
  'sign-in-rule-facts',
  `SELECT
     ARRAY(SELECT r.name FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = $1 ORDER BY r.name) AS roles,
     ARRAY(SELECT m.organization_id FROM organization_users m WHERE m.user_id = $1 ORDER BY 1) AS organizations,
     EXISTS (SELECT FROM known_devices d WHERE d.user_id = $1 AND d.digest = $2) AS "isDeviceKnown",
     0 AS failures`,
)

export const findRuleFacts = async (query: Query, userId: string, device: Buffer | null): Promise<RuleFacts> => {
  const [row] = await query<RuleFacts>(select, [userId, device])
  return row!
}
