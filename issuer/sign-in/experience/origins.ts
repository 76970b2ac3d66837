import type { IncomingMessage } from 'node:http'
import type { Query } from '../../../platform/database/database.ts'
import { problem } from '../../base/errors/problems.ts'
import type { SignInExperience } from '../../directory/sign-in-experience/sign-in-experience.ts'
import { signInPagesOfApplications } from './sign-in-pages-store.ts'

/** Where an application's pages of signing in are, if they are not ours. */
export type SignInPagesOf = (clientId: string) => Promise<string | null>

export interface OriginDependencies {
  query: Query
  settings: () => Pick<SignInExperience, 'signInPages'>
  signInPagesOf: SignInPagesOf
  /** Where browsers reach the issuer. */
  baseUrl: string
}

export interface Origins {
  /**
   * Whose page asks; undefined when no browser does. Throws 403 for a page that may not sign people in to this
   * application, or, without one, to any.
   */
  required(request: IncomingMessage, clientId: string | undefined): Promise<string | undefined>
  /** Of a preflight, which names no application. */
  isKnown(origin: string): Promise<boolean>
}

const originOf = (page: string | null): string[] => (page !== null && URL.canParse(page) ? [new URL(page).origin] : [])

/**
 * Pages of our own origin, and of `signInPages`, may use the cookies of signing in. A browser that sends no `Origin`
 * vouches for our own page (a GET), or it is none.
 */
export const createOrigins = ({ query, settings, signInPagesOf, baseUrl }: OriginDependencies): Origins => {
  const own = new URL(baseUrl).origin

  const isKnown = async (origin: string): Promise<boolean> => {
    if (origin === own || originOf(settings().signInPages).includes(origin)) return true
    return (await signInPagesOfApplications(query)).flatMap(originOf).includes(origin)
  }

  const isAllowed = async (origin: string, clientId: string | undefined): Promise<boolean> => {
    if (origin === own) return true
    return clientId === undefined ? isKnown(origin) : originOf(await signInPagesOf(clientId)).includes(origin)
  }

  return {
    isKnown,
    async required({ headers, method }, clientId) {
      const { origin } = headers
      const site = headers['sec-fetch-site']
      const refused = () => problem('session.origin_not_allowed')
      if (site === 'cross-site') throw refused()
      if (origin !== undefined) {
        if (!(await isAllowed(origin, clientId))) throw refused()
        return origin
      }
      if (site === undefined || (site === 'same-origin' && method === 'GET')) return undefined
      throw refused()
    },
  }
}
