import { oneRow, type Query, statement } from '../../platform/database/database.ts'

/** What operators' rules are told of a person, beside the proofs. */
export interface RuleFacts {
  /** Names. */
  roles: string[]
  /** Ids. */
  organizations: string[]
  isDeviceKnown: boolean
  /** Within the window: from browsers that are not known, from this one if it is, and of second factors. */
  failures: number
}

const select = statement(
  'sign-in-rule-facts',
  `SELECT
     ARRAY(SELECT r.name FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = $1 ORDER BY r.name) AS roles,
     ARRAY(SELECT m.organization_id FROM organization_users m WHERE m.user_id = $1 ORDER BY 1) AS organizations,
     EXISTS (SELECT FROM known_devices d WHERE d.user_id = $1 AND d.digest = $2) AS "isDeviceKnown",
     (SELECT coalesce(sum(f.count), 0) FROM sign_in_failures f
       WHERE f.key = ANY ($3::bytea[]) AND (f.locked_until > now() OR f.since > now() - $4 * interval '1 second')) AS failures`,
)

export const findRuleFacts = (
  query: Query,
  {
    userId,
    device,
    failureKeys,
    windowSeconds,
  }: { userId: string; device: Buffer | null; failureKeys: readonly Buffer[]; windowSeconds: number },
): Promise<RuleFacts> => oneRow(query<RuleFacts>(select, [userId, device, failureKeys, windowSeconds]))
