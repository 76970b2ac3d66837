import { z } from 'zod'
import type { Authenticator, CreationOptions, RequestOptions } from './authenticator.ts'
import { type HtmlForm, submissionOf } from './html-page.ts'
import { SignInFailed, type SignInOptions, type Step } from './step.ts'

/** The forms that a script of the pages answers, with an authenticator in software. */

const jsonText = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    context.addIssue({ code: 'custom', message: 'no JSON' })
    return z.NEVER
  }
})

const optionsOf = (form: HtmlForm) => jsonText.safeParse(form.data['options'])

/** Undefined when it has none that fits. */
const answerTo = (form: HtmlForm, { get, create }: Authenticator): unknown => {
  const options = optionsOf(form)
  if (!options.success) throw new SignInFailed('The options of a passkey on the page are no JSON.')
  try {
    return form.data['passkey'] === 'create'
      ? create(options.data as CreationOptions)
      : get(options.data as RequestOptions)
  } catch (cause) {
    throw new SignInFailed(`The authenticator refuses: ${(cause as Error).name}.`, { cause })
  }
}

const holdsOneFor = (form: HtmlForm, { credentials }: Authenticator): boolean => {
  const { data } = z.object({ rpId: z.string() }).safeParse(optionsOf(form).data)
  return credentials.some(({ rpId }) => rpId === data?.rpId)
}

const fill = (form: HtmlForm, _page: unknown, { authenticator }: SignInOptions): URLSearchParams =>
  submissionOf(form, { values: { credential: JSON.stringify(answerTo(form, authenticator!)) } })

export const passkeySteps: readonly Step[] = [
  {
    name: 'the passkey',
    once: true,
    knows: (form, { authenticator }) =>
      form.data['passkey'] === 'get' && authenticator !== undefined && holdsOneFor(form, authenticator),
    fill,
  },
  {
    name: 'the new passkey',
    once: true,
    knows: (form, { authenticator }) => form.data['passkey'] === 'create' && authenticator !== undefined,
    fill,
  },
]
