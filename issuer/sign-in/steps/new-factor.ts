import { qrPicture } from '../../directory/users/factors/index.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { provenAddress } from '../../interaction/required-profile.ts'
import type { NewFactor, PageFactor } from '../../pages/index.ts'
import { addressTypeOf } from './codes.ts'
import type { StepView } from './step.ts'

/** What was entered before, to be shown again. */
export interface Editing {
  /** An address. */
  entered?: string
  /** The proof that the page was about. */
  proofId?: string
}

/** What the page of a factor needs to set it up; undefined when the interaction is over. */
export const newFactor = (
  view: StepView,
  kind: PageFactor,
  editing: Editing | undefined,
): Promise<NewFactor | undefined> => begin[kind](view, kind as never, editing)

type Begin<Kind> = (view: StepView, kind: Kind, editing: Editing | undefined) => Promise<NewFactor | undefined>

const beginAddress: Begin<'email_code' | 'phone_code'> = async ({ operations, interaction }, kind, editing) => {
  const type = addressTypeOf[kind]
  const waiting = await operations.codes.waiting(interaction, type, 'bind')
  const sentTo = waiting && (type === 'phone' ? `+${waiting.address}` : waiting.address)
  return { kind, entered: editing?.entered ?? '', sentTo: editing?.entered === undefined ? sentTo : undefined }
}

const begin: { [Kind in PageFactor]: Begin<Kind> } = {
  async totp(view, kind) {
    const { operations, interaction, settings, hostname } = view
    const issuer = settings.displayName ?? hostname
    const { name: account } = await ownerOf(view)
    const made = await operations.enrolment.totp(interaction, { issuer, account })
    if (!made) return undefined
    const { proofId, secret, uri } = made
    return { kind, proofId, secret, uri, picture: qrPicture(uri) }
  },
  async passkey(view, kind) {
    const { operations, interaction } = view
    const request = await operations.passkeys.registration(interaction, await ownerOf(view))
    return request && { kind, ...request }
  },
  email_code: beginAddress,
  phone_code: beginAddress,
  async backup_code({ operations, interaction }, kind) {
    const made = await operations.enrolment.backupCodes(interaction)
    return made && { kind, ...made }
  },
}

/** What authenticators call the account. Somebody new has what was entered here. */
export const ownerOf = async ({
  query,
  interaction: { person, staged, proofs },
}: StepView): Promise<{ name: string; displayName: string }> => {
  const account = person && (await findAccount(query, person.id))
  if (account) return { name: account.identifier || account.name, displayName: account.name || account.identifier }
  const number = provenAddress(proofs, 'phone')
  const name = provenAddress(proofs, 'email') ?? staged.username ?? (number === undefined ? '' : `+${number}`)
  return { name, displayName: name }
}
