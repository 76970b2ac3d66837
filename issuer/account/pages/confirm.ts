import { onlyValue } from '../../base/read-form.ts'
import { authenticationCredential } from '../../directory/users/factors/index.ts'
import type { LinkOutcome } from '../../interaction/account-federation.ts'
import { personAddress } from '../../interaction/person-store.ts'
import type { ProofKindName } from '../../interaction/proofs.ts'
import {
  type AccountError,
  type Asked,
  accountConfirmPage,
  type ConfirmedBy,
  type PlainMessage,
} from '../../pages/account/index.ts'
import { reauthenticationSeconds } from '../reauthentication.ts'
import type { AccountAnswer, AccountPage, AccountVisit } from './account-page.ts'
import { credentialIn } from './credential.ts'
import { errorOf, statusOf } from './errors.ts'

const path = '/account/confirm'

/** Where somebody confirms who they are, and which page of ours they come back to. */
export const confirmPath = (next: string): string => `${path}?${new URLSearchParams({ next })}`

/** Pages of the account alone: the way back never leads anywhere else. */
const nextOf = (text: string | null | undefined): string =>
  text != null && /^\/account(\/[a-z-]+)*$/.test(text) ? text : '/account'

/** What is typed into a form of the page. */
const typedWays = ['password', 'totp', 'email_code', 'phone_code', 'backup_code'] as const
const ways = ['passkey', ...typedWays, 'federated'] as const

/** What the callback says of an attempt that came to nothing. */
const outcomes: Readonly<Partial<Record<LinkOutcome, PlainMessage>>> = {
  not_theirs: 'accountConfirmDenied',
  denied: 'accountConfirmDenied',
  failed: 'accountIdentityFailed',
  unavailable: 'accountIdentityFailed',
}

interface Entered {
  next: string
  kind: ConfirmedBy
  proofId?: string | undefined
  error: AccountError
}

/** The person shows again who they are; it counts for ten minutes, in this session. */
export const confirm: AccountPage<Entered> = {
  path,
  title: 'reauthenticate',

  async show(visit, entered) {
    const { operations, federation, person, parameters, shell } = visit
    const next = nextOf(entered?.next ?? parameters.get('next'))
    const offered = await operations.verifications.available(person)
    const providers = await federation.ofPerson(person.userId)
    const kinds = ways.filter((way) =>
      way === 'federated' ? providers.length > 0 : offered.includes(way satisfies ProofKindName),
    )
    const wanted = entered?.kind ?? parameters.get('with')
    const kind = kinds.find((way) => way === wanted) ?? kinds[0]
    const proofId = entered?.proofId ?? parameters.get('proof') ?? undefined
    const outcome = outcomes[(parameters.get('outcome') ?? '') as LinkOutcome]
    return accountConfirmPage(shell, {
      asked: kind && (await ask[kind](visit, kind as never, proofId)),
      others: kinds
        .filter((way) => way !== kind)
        .map((way) => ({ kind: way, href: `${path}?${new URLSearchParams({ next, with: way })}` })),
      next,
      minutes: reauthenticationSeconds / 60,
      error: entered?.error ?? (outcome && { message: outcome }),
    })
  },

  choices: {
    async send(answer) {
      const { form, operations, context, person, query, goTo, again } = answer
      const kind = onlyValue(form, 'kind')
      const type = kind === 'email_code' ? 'email' : 'phone'
      const address = await personAddress(query, person.userId, type)
      if (address === undefined) return goTo(confirmPath(nextIn(answer)))
      const sending = operations.verifications.codes.send(context('sendMyCode'), { type, value: address })
      const error = await errorOf(sending)
      if (error)
        return again(
          { next: nextIn(answer), kind: codeKinds[type], error: { ...error, field: undefined } },
          statusOf(error),
        )
      const { id } = await sending
      goTo(`${path}?${new URLSearchParams({ next: nextIn(answer), with: codeKinds[type], proof: id })}`)
    },
    async verify(answer) {
      const { form, done, again } = answer
      const next = nextIn(answer)
      const kind = typedWays.find((way) => way === onlyValue(form, 'kind')) ?? 'password'
      const field = kind === 'password' ? 'password' : 'code'
      const proofId = onlyValue(form, 'proofId')
      const typed = onlyValue(form, field) ?? ''
      if (typed.trim() === '') {
        const message = kind === 'password' ? 'passwordMissing' : 'factorCodeMissing'
        return again({ next, kind, proofId, error: { message, field } })
      }
      const error = await errorOf(verify[kind](answer, typed))
      if (!error) return done('accountConfirmed', next)
      const isOver = error.message === 'codeOver' || error.message === 'lockedForNow'
      await again(
        { next, kind, proofId: isOver ? undefined : proofId, error: isOver ? unfielded(error) : error },
        statusOf(error),
      )
    },
    async provider(answer) {
      const { federation, person, form, told, leave, again } = answer
      const next = nextIn(answer)
      const connectorId = onlyValue(form, 'connector') ?? ''
      const mayBeAsked = (await federation.ofPerson(person.userId)).some(({ id }) => id === connectorId)
      const failed = (message: PlainMessage, status?: number) =>
        again({ next, kind: 'federated', error: { message } }, status)
      if (!mayBeAsked) return failed('accountIdentityFailed')
      const sent = await federation.begin(person, {
        connectorId,
        returnTo: `${path}?${new URLSearchParams({ next, with: 'federated' })}`,
        confirmedTo: told('accountConfirmed', next),
      })
      if (sent.outcome === 'begun') return leave(sent.url)
      if (sent.outcome === 'too_many_requests') return failed('tooManyRequestsForNow', 429)
      await failed('accountIdentityFailed')
    },
    async passkey(answer) {
      const { form, operations, context, done, again } = answer
      const credential = credentialIn(form, authenticationCredential)
      const id = onlyValue(form, 'proofId') ?? ''
      const failed = { next: nextIn(answer), kind: 'passkey', error: { message: 'factorPasskeyFailed' } } as const
      if (!credential) return again(failed)
      const proven = operations.verifications.passkeys.verifyAuthentication(context('verifyMyPasskey'), {
        id,
        credential,
      })
      const error = await errorOf(proven)
      if (error) return again(error.code === 'rate_limit.exceeded' ? { ...failed, error } : failed, statusOf(error))
      done('accountConfirmed', nextIn(answer))
    },
  },
}

const codeKinds = { email: 'email_code', phone: 'phone_code' } as const

const unfielded = (error: AccountError): AccountError => ({ ...error, field: undefined })

const nextIn = ({ form, parameters }: AccountAnswer): string =>
  nextOf(onlyValue(form, 'next') ?? parameters.get('next'))

/** What its form needs. */
const ask: {
  [Kind in ConfirmedBy]: (visit: AccountVisit, kind: Kind, proofId: string | undefined) => Promise<Asked | undefined>
} = {
  password: async ({ shell }) => ({ kind: 'password', identifier: shell.account.identifier }),
  totp: async () => ({ kind: 'totp' }),
  backup_code: async () => ({ kind: 'backup_code' }),
  email_code: async ({ query, person }, kind, proofId) => {
    const address = await personAddress(query, person.userId, 'email')
    return address === undefined ? undefined : { kind, address, proofId }
  },
  phone_code: async ({ query, person }, kind, proofId) => {
    const address = await personAddress(query, person.userId, 'phone')
    return address === undefined ? undefined : { kind, address, proofId }
  },
  federated: async ({ federation, person }, kind) => ({ kind, providers: await federation.ofPerson(person.userId) }),
  passkey: async ({ operations, context }, kind) => {
    const { id, options } = await operations.verifications.passkeys.authentication(context('beginMyPasskey'))
    return { kind, proofId: id, options }
  },
}

const verify: { [Kind in (typeof typedWays)[number]]: (answer: AccountAnswer, typed: string) => Promise<unknown> } = {
  password: ({ operations, context }, typed) =>
    operations.verifications.password(context('verifyMyPassword'), typed.slice(0, 1_025)),
  totp: ({ operations, context }, typed) => operations.verifications.totp(context('verifyMyTotp'), typed.slice(0, 32)),
  backup_code: ({ operations, context }, typed) =>
    operations.verifications.backupCode(context('verifyMyBackupCode'), typed.slice(0, 32)),
  email_code: (answer, typed) => verifyCode(answer, typed),
  phone_code: (answer, typed) => verifyCode(answer, typed),
}

const verifyCode = ({ operations, context, form }: AccountAnswer, code: string) =>
  operations.verifications.codes.verify(context('verifyMyCode'), {
    id: onlyValue(form, 'proofId') ?? '',
    code: code.slice(0, 32),
  })
