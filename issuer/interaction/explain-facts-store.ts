import { type Query, statement } from '../../platform/database/database.ts'
import { readSetting } from '../base/settings-store.ts'
import { type SignInExperience, signInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import type { Consent } from '../tokens/consents/consent.ts'
import { findConsent } from '../tokens/consents/consent-store.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import { findAuthorizationClient } from './authorization-client-store.ts'
import { readIdentifier } from './identifier.ts'
import { personFacts, type StoredPersonFacts, toPersonFacts } from './person-facts-store.ts'
import { findPerson } from './person-store.ts'

/** What decides what comes next for a person and a client, for whoever asks why; nobody signs in by it. */
export interface ExplainFacts {
  person: StoredPersonFacts & {
    username: string | null
    /** Names. */
    roles: string[]
    /** Ids. */
    organizations: string[]
  }
  client: AuthorizationClient
  settings: SignInExperience
  /** That the person gave this application, if it counts. */
  consent: Consent
}

const selectPerson = statement(
  'explain-person',
  `SELECT ${personFacts('$1')} AS facts,
     (SELECT username FROM users WHERE id = $1) AS username,
     ARRAY(SELECT r.name FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = $1 ORDER BY 1) AS roles,
     ARRAY(SELECT m.organization_id FROM organization_users m WHERE m.user_id = $1 ORDER BY 1) AS organizations`,
)

interface PersonRow extends Pick<ExplainFacts['person'], 'username' | 'roles' | 'organizations'> {
  facts: unknown
}

/** `user`: an id, or what the person would type to sign in. */
export const findExplainFacts = async (
  query: Query,
  { user, clientId }: { user: string; clientId: string },
): Promise<{ [Member in keyof ExplainFacts]: ExplainFacts[Member] | undefined } & Pick<ExplainFacts, 'settings'>> => {
  const byId = async (id: string): Promise<ExplainFacts['person'] | undefined> => {
    const [{ facts = null, ...row } = { username: null, roles: [], organizations: [] }] = await query<PersonRow>(
      selectPerson,
      [id],
    )
    const person = toPersonFacts(facts)
    return person && { ...person, ...row }
  }
  const byIdentifier = async () => {
    const identifier = readIdentifier(user)
    const found = identifier && (await findPerson(query, identifier, undefined))
    return found && byId(found.id)
  }
  const person = (await byId(user)) ?? (await byIdentifier())
  return {
    person,
    client: await findAuthorizationClient(query, clientId),
    consent: person && (await findConsent(query, person.id, clientId)),
    settings: await readSetting(query, signInExperience),
  }
}
