import type { z } from 'zod'
import { findSenders, type SealedConnector, type SenderType } from '../../../deliveries/messages/connector-store.ts'
import type { Notifier } from '../../../events/notifier.ts'
import type { Database } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import { sessionSettings } from '../../tokens/sessions/session-settings.ts'
import { findApplicationExperience, loadSettings, settingsRevision } from './settings-revision-store.ts'
import { type ApplicationExperience, type SignInExperience, signInExperience } from './sign-in-experience.ts'

/**
 * What signing in is set to, in memory: nobody who signs in waits for it. What is answered is never older than a
 * second (and what the database takes to answer): other instances announce a change when it commits, and whoever does
 * not hear it looks at the revision once a second. Without the database the last settings stay; nobody can sign in
 * then.
 */
export interface Settings {
  /** Of the issuer; defaults filled in. */
  experience(): SignInExperience
  /** What an application has of its own. Read when it is asked for the first time after a change. */
  ofApplication(applicationId: string): Promise<ApplicationExperience | undefined>
  /** The connector that sends mail, or SMS. */
  sender(type: SenderType): SealedConnector | undefined
  /** How long sessions last, in seconds. */
  session(): z.output<typeof sessionSettings.schema>
  /** A memory of its own for what changes with settings and connectors alone, and no oftener. */
  memory<Value>(): Memory<Value>
  /**
   * After a change that was committed: this instance acts on it from here on. Never fails; what cannot be read now is
   * read within the second.
   */
  refreshed(): Promise<void>
  /** Reads no more; resolves when a read that is under way has ended. */
  close(): Promise<void>
}

/** What `find` answered for this key since the last change; asked again after one that failed. */
export type Memory<Value> = (key: string, find: () => Promise<Value>) => Promise<Value>

export interface SettingsOptions {
  database: Pick<Database, 'query'>
  /** On `settingsChannel`. Without it changes are found within `pollMs`. */
  notifier?: Pick<Notifier, 'onNotify'> | undefined
  logger: Logger
}

const pollMs = 1_000
/** In each memory; the oldest goes. */
const mostRemembered = 1_000

/** Reads them for the first time. Throws when what is stored cannot be understood. */
export const createSettings = async ({ database, notifier, logger }: SettingsOptions): Promise<Settings> => {
  const { query } = database

  const load = async () => {
    const { revision, experience, session } = await loadSettings(query)
    return {
      revision,
      experience: signInExperience.schema.parse(experience ?? {}),
      session: sessionSettings.schema.parse(session ?? {}),
      // Of this revision or a later one, which is seen when the revision is looked at again.
      senders: await findSenders(query),
    }
  }
  let current = await load()

  /** Also one that cannot be understood: then the settings stay, and what was remembered is forgotten. */
  let seen = current.revision
  const read = async () => {
    const revision = await settingsRevision(query)
    if (revision === current.revision) return
    seen = revision
    current = await load()
    seen = current.revision
  }
  // One after the other: what was read earlier never takes the place of what was read later.
  let last = Promise.resolve()
  const refreshed = () => {
    last = last.then(read).catch((error) => logger.warn({ err: error }, 'the settings of signing in could not be read'))
    return last
  }
  let isWaiting = false
  /** One that waits already will see what is there when its turn comes. */
  const keepUp = () => {
    if (isWaiting) return
    isWaiting = true
    last = last.then(() => {
      isWaiting = false
    })
    void refreshed()
  }

  const memory = <Value>(): Memory<Value> => {
    let of = seen
    let known = new Map<string, Promise<Value>>()
    return (key, find) => {
      // It belongs to one revision: what was read before a change never gets among what is read after it.
      if (of !== seen) {
        of = seen
        known = new Map()
      }
      const remembered = known.get(key)
      if (remembered) return remembered
      const found = find()
      if (known.size >= mostRemembered) known.delete(known.keys().next().value ?? '')
      known.set(key, found)
      const among = known
      found.catch(() => among.delete(key))
      return found
    }
  }
  const ofApplications = memory<ApplicationExperience | undefined>()

  const stopListening = notifier?.onNotify(keepUp)
  const timer = setInterval(keepUp, pollMs)
  timer.unref()

  return {
    experience: () => current.experience,
    session: () => current.session,
    sender: (type) => current.senders.find((connector) => connector.type === type),
    ofApplication: (applicationId) =>
      ofApplications(applicationId, () => findApplicationExperience(query, applicationId)),
    memory,
    refreshed,
    async close() {
      clearInterval(timer)
      stopListening?.()
      await last
    },
  }
}
