import { foreignName, foreignSentence, initialOf } from './foreign-text.ts'
import { formOf, type Problem } from './form.ts'
import { type Html, html } from './html.ts'
import type { MessageKey } from './messages/translation.ts'
import type { Say } from './say.ts'

/** Identity providers by which people may come. */
export interface PageProvider {
  id: string
  name: string
  /** `https:` only. */
  logo?: string | undefined
  darkLogo?: string | undefined
}

/** What came of asking a provider. */
export interface ProviderNotice {
  outcome: 'denied' | 'failed' | 'unavailable' | 'no_account' | 'email_refused' | 'prove_first'
  provider: string
  /** `prove_first`: that the account and the provider have. */
  email?: string | undefined
  /** In the words of the provider. */
  text?: string | undefined
}

/** A form of their own: whoever comes that way has typed nothing. */
export const providerButtons = (
  say: Say,
  { providers = [], ...form }: { action: string; csrf: string; providers?: readonly PageProvider[] | undefined },
): Html | undefined =>
  providers.length === 0
    ? undefined
    : formOf(
        form,
        html`<p class="or" role="separator">${say('or')}</p>
<p class="actions providers">${providers.map(
          ({ id, name, logo, darkLogo }) => html`
<button class="quiet" name="choice" value="provider:${id}">${picture(name, logo, darkLogo)}<span>${say('continueWith', { provider: foreignName(name) })}</span></button>`,
        )}
</p>`,
      )

const picture = (name: string, logo: string | undefined, darkLogo = logo): Html =>
  logo === undefined
    ? html`<span class="letter" aria-hidden="true">${initialOf(name)}</span>`
    : html`<picture><source srcset="${darkLogo}" media="(prefers-color-scheme: dark)"><img src="${logo}" alt="" width="24" height="24"></picture>`

/** For `PageParts`. */
export const providerPictures = (providers: readonly PageProvider[] = []): string[] =>
  providers.flatMap(({ logo, darkLogo }) => [logo, darkLogo].filter((url) => url !== undefined))

const texts = {
  denied: 'providerDenied',
  failed: 'providerFailed',
  unavailable: 'providerUnavailable',
  no_account: 'providerNoAccount',
  email_refused: 'providerEmailRefused',
} as const satisfies Partial<Record<ProviderNotice['outcome'], MessageKey>>

/** What went wrong, in our words, and then in those of the provider. */
export const providerProblem = (say: Say, { outcome, provider, text }: ProviderNotice): Problem | undefined => {
  if (outcome === 'prove_first') return undefined
  const message = say(texts[outcome], { provider: foreignName(provider) })
  return {
    message:
      text === undefined || text.trim() === ''
        ? message
        : html`${message}<br>${say('providerSays', { provider: foreignName(provider), text: foreignSentence(text) })}`,
  }
}

/** For whoever has to show first that the account is theirs. */
export const linkingText = (say: Say, { provider, email = '' }: ProviderNotice): Html =>
  say('providerProveFirst', { provider: foreignName(provider), address: foreignName(email, 256) })
