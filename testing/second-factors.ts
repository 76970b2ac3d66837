import { hotp, readTotpSecret, totpStep } from '../issuer/directory/users/factors/totp.ts'
import { type HtmlForm, submissionOf } from './html-page.ts'
import { choice, SignInFailed, type SignInOptions, type Step } from './step.ts'

/** What is asked for beyond the password, as far as it can be had without a browser: passkeys cannot. */

const kindOf = ({ fields }: HtmlForm) => fields.find(({ name }) => name === 'kind')?.value
const has = ({ fields }: HtmlForm, field: string) => fields.some(({ name }) => name === field)
/** A new factor is being set up. */
const isSetUp = (form: HtmlForm) => has(form, 'proofId')
const isByMessage = (form: HtmlForm) => ['email_code', 'phone_code', undefined].includes(kindOf(form))

const otherWay = ({ buttons }: HtmlForm, { totpSecret, nextCode }: SignInOptions) =>
  buttons.find(
    ({ name, value }) =>
      name === 'factor' &&
      ((totpSecret && value === 'totp') || (nextCode && ['email_code', 'phone_code'].includes(value))),
  )

const codeOfApp = ({ totpSecret }: SignInOptions): string => {
  const secret = readTotpSecret(totpSecret?.reveal() ?? '')
  if (!secret) throw new SignInFailed('--totp-secret is no base32 of 16 bytes or more.')
  return hotp(secret, totpStep(new Date()))
}

export const factorSteps: readonly Step[] = [
  {
    name: 'the code of an authenticator app',
    once: true,
    knows: (form, { totpSecret }) =>
      kindOf(form) === 'totp' && has(form, 'code') && !isSetUp(form) && totpSecret !== undefined,
    fill: (form, _page, options) =>
      submissionOf(form, { values: { code: codeOfApp(options) }, pressed: choice(form, 'verify') }),
  },
  {
    name: 'the code of a message',
    once: true,
    knows: (form, { nextCode }) =>
      isByMessage(form) && has(form, 'code') && choice(form, 'verify') !== undefined && nextCode !== undefined,
    async fill(form, _page, { nextCode }) {
      return submissionOf(form, { values: { code: await nextCode!() }, pressed: choice(form, 'verify') })
    },
  },
  {
    name: 'the sending of a code',
    once: true,
    knows: (form, { nextCode }) =>
      kindOf(form) !== undefined &&
      isByMessage(form) &&
      !has(form, 'address') &&
      choice(form, 'send') !== undefined &&
      nextCode !== undefined,
    fill: (form) => submissionOf(form, { pressed: choice(form, 'send') }),
  },
  {
    name: 'the choice of a second factor',
    once: true,
    // Where a factor may be added there are the same buttons, and a choice not to.
    knows: (form, options) =>
      otherWay(form, options) !== undefined &&
      choice(form, 'skip') === undefined &&
      choice(form, 'cancel') === undefined,
    fill: (form, _page, options) => submissionOf(form, { pressed: otherWay(form, options) }),
  },
  {
    name: 'the offer of a second factor',
    once: true,
    knows: (form) => choice(form, 'skip') !== undefined,
    fill: (form) => submissionOf(form, { pressed: choice(form, 'skip') }),
  },
]
