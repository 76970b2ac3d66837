import { captchaAsset } from './assets.ts'
import { type Html, html } from './html.ts'
import type { Say } from './say.ts'

/** A test for machines, as plain data. */
export type CaptchaField =
  | { provider: 'proof_of_work'; challenge: string; difficulty: number }
  | { provider: 'turnstile'; siteKey: string; action: string; data: string }

/** A test within a form. */
export interface FormCaptcha {
  /** Its answer is sent as `captcha`. */
  field: Html
  /** What the page allows besides, so that it may run. */
  allowed: { scriptSource: string; frameSource: string | undefined }
}

/** Without scripts there is no answer: the page must offer a code by mail then. */
export const captchaField = (say: Say, test: CaptchaField): FormCaptcha =>
  test.provider === 'turnstile' ? turnstile(say, test) : proofOfWork(say, test)

const withoutScript = (say: Say): Html => html`<noscript><p>${say('captchaWithoutScript')}</p></noscript>`

const proofOfWork = (
  say: Say,
  { challenge, difficulty }: CaptchaField & { provider: 'proof_of_work' },
): FormCaptcha => ({
  // The script shows and hides what comes next to the field.
  field: html`<input type="hidden" name="captcha" data-challenge="${challenge}" data-difficulty="${difficulty}" autocomplete="off"><p role="status" hidden>${say('captchaWorking')}</p>
${withoutScript(say)}
<script src="${captchaAsset.path}" integrity="${captchaAsset.integrity}" async></script>`,
  // Not every browser takes the digest of a script for that of a file.
  allowed: { scriptSource: "'self'", frameSource: undefined },
})

const turnstileOrigin = 'https://challenges.cloudflare.com'

const turnstile = (say: Say, { siteKey, action, data }: CaptchaField & { provider: 'turnstile' }): FormCaptcha => ({
  field: html`<div class="cf-turnstile" data-sitekey="${siteKey}" data-action="${action}" data-cdata="${data}" data-response-field-name="captcha"></div>
${withoutScript(say)}
<script src="${turnstileOrigin}/turnstile/v0/api.js" async></script>`,
  allowed: { scriptSource: turnstileOrigin, frameSource: turnstileOrigin },
})
