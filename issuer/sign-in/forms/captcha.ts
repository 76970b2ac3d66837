import { type Form, onlyValue } from '../../base/read-form.ts'
import type { AddressType } from '../../interaction/code-proof.ts'
import type { Interaction } from '../../interaction/interaction-store.ts'
import type { InteractionOperations } from '../../interaction/operations.ts'
import type { Visitor } from '../../interaction/visitor.ts'
import type { CaptchaField } from '../../pages/index.ts'

interface Tested {
  operations: Pick<InteractionOperations, 'captchas'>
  interaction: Interaction
  visitor: Visitor
}

/** The test for machines on a form that proves or sends something, where one is due: for `captchaField` of its page. */
export const captchaOf = async ({ operations, interaction, visitor }: Tested): Promise<CaptchaField | undefined> =>
  (await operations.captchas.isDue(interaction, visitor)) ? operations.captchas.challenge(interaction) : undefined

/** The same on a form that sends a code: only a text message to somebody unknown needs a test. */
export const sendingCaptchaOf = async (
  tested: Tested,
  types: readonly AddressType[],
): Promise<CaptchaField | undefined> =>
  types.includes('phone') && !tested.interaction.person ? captchaOf(tested) : undefined

export type CaptchaTaken =
  /** The interaction as it is now. */
  | { interaction: Interaction; error?: undefined }
  /** `unavailable`: 503, whoever tests cannot be reached. */
  | { error: 'failed' | 'unavailable' }

/** Takes the answer of a form. One without goes on as it is: what it is for refuses it where one was due. */
export const takeCaptcha = async ({
  operations,
  interaction,
  visitor,
  form,
  releaseTurn,
}: Tested & { form: Form; releaseTurn(): void }): Promise<CaptchaTaken> => {
  const answer = onlyValue(form, 'captcha')
  // Without scripts the field is there and blank; a code by mail needs no answer.
  if (answer === undefined || answer === '' || interaction.state.captcha === true) return { interaction }
  if (operations.captchas.asksOthers) releaseTurn()
  const outcome = await operations.captchas.answer(interaction, visitor, answer)
  if (outcome === 'unavailable') return { error: 'unavailable' }
  if (outcome !== 'passed' && outcome !== 'skipped') return { error: 'failed' }
  return { interaction: { ...interaction, state: { ...interaction.state, captcha: true } } }
}
