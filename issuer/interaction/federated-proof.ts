import type { Query, Transaction } from '../../platform/database/database.ts'
import type { TokenAudit } from '../base/audit/token-audit.ts'
import type { Federation, FederationError, OfferedConnector } from '../connectors/federation.ts'
import type { SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import { checkEmail } from '../directory/users/registration-rules/email-blocklist.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import { isSameText } from './federation-request.ts'
import { awaitedSeconds, type FederationRequests, type FederationSent, providerText } from './federation-requests.ts'
import { type AwaitedInteraction, type AwaitedProof, offerLink } from './federation-store.ts'
import { findLinking } from './find-linking.ts'
import { beginEvent, keepDecision } from './interaction-changes-store.ts'
import type { FederationOutcome, InteractionEventName } from './interaction-state.ts'
import type { Interaction } from './interaction-store.ts'
import type { Linking } from './linking.ts'
import { beginProof, keepProof } from './proof-store.ts'
import { type FederatedIdentity, type ProofData, type ProofPurpose, recordTypeOf } from './proofs.ts'
import { allows } from './settings.ts'
import type { Visitor } from './visitor.ts'

/** What a proof by a provider can be for. */
export type FederationPurpose = Extract<ProofPurpose, 'sign_in' | 'register' | 'bind'>

export type FederationBegun = Exclude<FederationSent, { outcome: 'unavailable' }> | { outcome: 'unavailable' }

export type FederationAnswered =
  /** Whatever came of it: the page of the interaction shows it, which may be over if something was proven. */
  | { outcome: 'go_on'; interaction: AwaitedInteraction; isProven?: boolean }
  /** Nobody here asked for this answer, or somebody else did. */
  | { outcome: 'refused' | 'other_browser' }

export type FederationVerified =
  | { outcome: 'verified'; proofId: string; identity: FederatedIdentity; linking: Linking }
  /** The proof waits for no answer, or this is none of its own. */
  | { outcome: 'not_found' }
  | { outcome: 'failed'; reason: FederationError['reason'] }
  | { outcome: 'over' }

/** Proofs that a person's identity provider gives (§13). */
export interface FederatedProofs {
  /** The social connectors of the pages of an application. */
  offered(interaction: Pick<Interaction, 'client'>): Promise<readonly OfferedConnector[]>
  /** The enterprise connector whose people sign in nowhere else; undefined where the settings leave it to them. */
  enterpriseOf(address: string): Promise<OfferedConnector | undefined>
  /** What `direct_sign_in` names. */
  direct(interaction: Pick<Interaction, 'client' | 'request'>): Promise<OfferedConnector | undefined>
  /** Where the browser goes to. What waits for another provider is void. */
  begin(interaction: Interaction, visitor: Visitor, asked: FederationAsked): Promise<FederationBegun>
  /** The answer of a provider to a request of a sign-in, as the browser brings it to the callback. */
  answer(
    awaited: AwaitedProof,
    visitor: Visitor,
    answer: { connectorId: string; state: string; parameters: URLSearchParams },
  ): Promise<FederationAnswered>
  /** The same, as a page of one's own brings it. */
  verify(
    interaction: Interaction,
    visitor: Visitor,
    answer: { connectorId: string; proofId: string; parameters: URLSearchParams },
  ): Promise<FederationVerified>
}

export interface FederationAsked {
  connectorId: string
  purpose: FederationPurpose
  loginHint?: string | undefined
  /** Of a page of one's own, which gets the answer itself. */
  page?: { state: string; redirectUri: string } | undefined
}

export const createFederatedProofs = ({
  database: { query, transaction },
  federation,
  requests,
  audit,
  settings,
}: {
  database: { query: Query; transaction<Result>(work: (trx: Query) => Promise<Result>): Promise<Result> }
  federation: Federation
  requests: FederationRequests
  audit: TokenAudit
  settings: () => SignInExperience
}): FederatedProofs => {
  // It is asked again where the sign-in finishes: until then it may change.
  const linkingFor = (identity: FederatedIdentity) => findLinking(query, identity, settings())

  const note = (
    { id, event, client }: Pick<AwaitedInteraction, 'id' | 'event' | 'client'>,
    { origin: { ip, userAgent } }: Visitor,
    connectorId: string,
    done: {
      identity?: FederatedIdentity | undefined
      linking?: Linking | undefined
      error?: string | undefined
      description?: string | undefined
    },
  ) => {
    const { identity, linking, error, description } = done
    const type = recordTypeOf({ kind: 'federated', data: { federated: identity } })
    audit.record({
      key: `Interaction.${event}.Verification.${type}.Submit`,
      result: error === undefined ? 'Success' : 'Error',
      applicationId: client.id,
      userId: linking && 'userId' in linking ? linking.userId : undefined,
      payload: { interactionId: id, ip, userAgent, connectorId, error, errorDescription: description },
    })
  }

  /** What the pages go on with: an account is signed in to, begun, or named to be proven. */
  const settle = async (
    interaction: Pick<AwaitedInteraction, 'id' | 'event'>,
    proofId: string,
    identity: FederatedIdentity,
  ): Promise<{ linking: Linking; refused?: FederationOutcome }> => {
    const { id } = interaction
    /** The interaction is for `event` from now on, where it is not already; else what is kept is all that changes. */
    const turningTo = (
      event: InteractionEventName,
      work: (on: Transaction, turn: () => Promise<void>) => Promise<void>,
    ) =>
      interaction.event === event
        ? work(query, async () => {})
        : transaction((trx) => work(trx, () => beginEvent(trx, { id, event, isAnew: false })))
    const linking = await linkingFor(identity)
    const data = dataOf(identity, linking)
    if (linking.outcome === 'prove_first') {
      await turningTo('SignIn', async (on, turn) => {
        await turn()
        await offerLink(on, { interactionId: id, userId: linking.userId, data })
      })
      return { linking, refused: 'prove_first' }
    }
    const kept = { interactionId: id, kind: 'federated', data } as const
    if (linking.outcome === 'new') {
      const refused = refusalOfNew(settings(), identity)
      if (refused) return { linking, refused }
      const purpose = interaction.event === 'Register' ? 'register' : 'sign_in'
      await turningTo('Register', async (on, turn) => {
        await keepProof(on, { ...kept, userId: null, purpose, pendingId: proofId })
        await turn()
      })
      return { linking }
    }
    const { userId } = linking
    await turningTo('SignIn', async (on, turn) => {
      await turn()
      await keepProof(on, { ...kept, userId, purpose: 'sign_in' })
    })
    return { linking }
  }

  return {
    offered: ({ client }) => federation.offered({ clientId: client.id }),

    async enterpriseOf(address) {
      const at = address.lastIndexOf('@')
      const domain = address
        .slice(at + 1)
        .trim()
        .toLowerCase()
      return settings().singleSignOnEnabled && at !== -1 && domain !== '' ? federation.byDomain(domain) : undefined
    },

    async direct({ client, request: { directSignIn } }) {
      if (directSignIn === undefined) return undefined
      const { method, target } = directSignIn
      if (method === 'social') {
        return (await federation.offered({ clientId: client.id })).find((one) => one.target === target)
      }
      const connector = await requests.enabled(target)
      return connector?.kind === 'sso' ? connector : undefined
    },

    async begin(interaction, visitor, { purpose, ...asked }) {
      // OpenID Connect Core §3.1.2.1: the person authenticates again, and it is the provider who asks.
      const { prompts, maxAge } = interaction.request
      const asksAgain = prompts.includes('login') || maxAge !== undefined
      const sent = await requests.send({ ...asked, asksAgain, ip: visitor.origin.ip }, async ({ id, sealed }) => {
        const begun = await beginProof(query, {
          ...{ id, interactionId: interaction.id, kind: 'federated', purpose, data: {} },
          userId: purpose === 'bind' ? (interaction.person?.id ?? null) : null,
          ...{ secret: sealed, seconds: awaitedSeconds },
        })
        return begun !== undefined
      })
      if (sent.outcome === 'begun' && interaction.state.federation)
        await keepDecision(query, interaction.id, { federation: null })
      if (sent.outcome !== 'unavailable') return sent
      const { connector, error } = sent
      await keepDecision(query, interaction.id, { federation: { outcome: 'unavailable', provider: connector.name } })
      note(interaction, visitor, connector.id, { error: error.reason, description: error.message })
      return { outcome: 'unavailable' }
    },

    async answer(awaited, visitor, { connectorId, state, parameters }) {
      const { interaction } = awaited
      if (!interaction) return { outcome: 'refused' }
      const { browser } = visitor
      if (browser === undefined || !tokenDigest('browser', browser).equals(interaction.browser)) {
        return { outcome: 'other_browser' }
      }
      const goOn = { outcome: 'go_on', interaction } as const
      const asked = requests.requestOf(awaited)
      // It came before, or too late: the page says where the sign-in stands, and nothing comes of it.
      if (!asked) return goOn
      if (asked.connectorId !== connectorId || !isSameText(asked.state, state)) return { outcome: 'refused' }
      if (!interaction.isOpen) return goOn

      const completed = await requests.complete(awaited.id, asked, parameters)
      const provider = completed.connector?.name ?? connectorId
      if ('reason' in completed) {
        const { reason, description } = completed
        if (reason === 'used') return goOn
        note(interaction, visitor, connectorId, { error: reason, description })
        const outcome = pageOutcomes[reason] ?? 'failed'
        await keepDecision(query, interaction.id, { federation: { outcome, provider, text: providerText(parameters) } })
        return goOn
      }
      const { identity } = completed
      const { linking, refused } = await settle(interaction, awaited.id, identity)
      if (refused) {
        const told = { outcome: refused, provider, email: identity.email }
        await keepDecision(query, interaction.id, { federation: told })
      }
      note(interaction, visitor, connectorId, { identity, linking, error: refused })
      return { ...goOn, isProven: refused === undefined }
    },

    async verify(interaction, visitor, { connectorId, proofId, parameters }) {
      const awaited = await requests.awaited(proofId)
      const asked = awaited && requests.requestOf(awaited)
      if (!asked || awaited.interaction?.id !== interaction.id) return { outcome: 'not_found' }
      const state = parameters.get('state')
      if (asked.connectorId !== connectorId || (state !== null && !isSameText(asked.state, state))) {
        return { outcome: 'not_found' }
      }
      // Pages that were made for others have compared it themselves, and leave it out.
      parameters.set('state', asked.state)
      const completed = await requests.complete(proofId, asked, parameters)
      if ('reason' in completed) {
        const { reason, description } = completed
        if (reason === 'used') return { outcome: 'not_found' }
        note(interaction, visitor, connectorId, { error: reason, description })
        return { outcome: 'failed', reason }
      }
      const { identity } = completed
      const { purpose } = awaited
      const linking = await linkingFor(identity)
      const data = dataOf(identity, linking)
      const keptId =
        purpose === 'sign_in' && linking.outcome === 'prove_first'
          ? await offerLink(query, { interactionId: interaction.id, proofId, userId: linking.userId, data })
          : await keepProof(query, {
              ...{ interactionId: interaction.id, kind: 'federated', pendingId: proofId, purpose, data },
              userId: ownerOf(purpose, linking, interaction),
            })
      if (keptId === undefined) return { outcome: 'over' }
      note(interaction, visitor, connectorId, { identity, linking })
      return { outcome: 'verified', proofId: keptId, identity, linking }
    },
  }
}

const ownerOf = (purpose: ProofPurpose, linking: Linking, { person }: Interaction): string | null => {
  if (purpose === 'bind') return person?.id ?? null
  return purpose === 'sign_in' && 'userId' in linking ? linking.userId : null
}

/** What is kept with the proof. An address is only somebody's who begins with it. */
const dataOf = (identity: FederatedIdentity, { outcome }: Linking): ProofData => ({
  federated: { ...identity, ...(outcome === 'by_address' && { isByAddress: true }) },
  ...(outcome === 'new' &&
    identity.email !== undefined && { identifier: { type: 'email', value: identity.email } as const }),
})

const refusalOfNew = (settings: SignInExperience, { email }: FederatedIdentity): FederationOutcome | undefined => {
  if (!allows(settings, 'Register')) return 'no_account'
  return email !== undefined && checkEmail(email, settings.emailBlocklistPolicy) ? 'email_refused' : undefined
}

const pageOutcomes: Partial<Record<FederationError['reason'], FederationOutcome>> = {
  denied: 'denied',
  unavailable: 'unavailable',
}
