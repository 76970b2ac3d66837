import { onlyValue } from '../../base/read-form.ts'
import type { AddressType } from '../../interaction/code-proof.ts'
import type { InteractionNotice } from '../../interaction/interaction-state.ts'
import type { ProofPurpose } from '../../interaction/proofs.ts'
import { allows } from '../../interaction/settings.ts'
import {
  type AddressError,
  type AddressPurpose,
  addressPage,
  type Page,
  type PageProvider,
  type ProviderNotice,
} from '../../pages/index.ts'
import { sendingCaptchaOf } from '../forms/captcha.ts'
import { type CodeEntered, readAddress, sendCode, showCode, statusOf, submitCode, waitingCode } from './codes.ts'
import { enterpriseOf, goToProvider } from './providers.ts'
import { pageOf, type StepAnswer, type StepView } from './step.ts'

/** An address, and the code that was sent to it: two pages of the steps that ask for one. */

export interface AddressEntered extends Partial<CodeEntered> {
  address?: string
  addressError?: AddressError
}

const takenNotices: Partial<Record<InteractionNotice, AddressError>> = {
  email_taken: 'email_taken',
  phone_taken: 'phone_taken',
}

export const showAddress = async (
  view: StepView,
  {
    page,
    purpose,
    types,
    ...by
  }: {
    page: AddressPurpose
    purpose: ProofPurpose
    types: readonly AddressType[]
    providers?: readonly PageProvider[]
    providerNotice?: ProviderNotice | undefined
  },
  entered: AddressEntered = {},
): Promise<Page> => {
  const waiting = await waitingCode(view, purpose)
  if (waiting && entered.addressError === undefined) return showCode(view, purpose, waiting, entered)
  const { request, state } = view.interaction
  const hint = request.loginHint !== undefined && readAddress(request.loginHint, types) ? request.loginHint : undefined
  return addressPage({
    ...pageOf(view),
    ...{ purpose: page, types },
    ...by,
    address: entered.address ?? hint,
    // The code was tried too often, or its time is over.
    error: entered.addressError ?? (entered.codeError ? 'code_over' : state.notice && takenNotices[state.notice]),
    canSignIn: allows(view.situation.settings, 'SignIn'),
    captcha: await sendingCaptchaOf(view, types),
  })
}

/** False: the form was of another page. */
export const submitAddress = async (
  answer: StepAnswer<AddressEntered>,
  { purpose, types }: { purpose: ProofPurpose; types: readonly AddressType[] },
): Promise<boolean> => {
  const { form, again, reload } = answer
  if (onlyValue(form, 'choice') !== 'code') return submitCode(answer as StepAnswer<CodeEntered>, purpose)
  const address = onlyValue(form, 'address') ?? ''
  const enterprise = purpose === 'register' ? await enterpriseOf(answer, address) : undefined
  if (enterprise) {
    const gone = await goToProvider(answer, enterprise.id, address.trim())
    if (gone !== 'gone') await again({ address, addressError: 'code_limited' }, 429)
    return true
  }
  const identifier = readAddress(address, types)
  const sent = identifier ? await sendCode(answer, purpose, identifier) : 'address_missing'
  if (sent === 'sent' || sent === 'over') await reload()
  else await again({ address, addressError: sent }, sent === 'address_missing' ? 400 : statusOf(sent))
  return true
}
