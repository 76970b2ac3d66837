import { errorIn } from './application.ts'
import type { Answer } from './browser.ts'
import { type HtmlPage, submissionOf } from './html-page.ts'
import { factorSteps } from './second-factors.ts'
import { choice, SignInFailed, type SignInOptions, type Step } from './step.ts'

/** The browser's half of a sign-in: the issuer's pages, one after the other. */

/** The first that knows a form of the page answers. */
const steps: readonly Step[] = [
  ...factorSteps,
  {
    name: 'the sign-in',
    once: true,
    knows: ({ fields }) => fields.some(({ type }) => type === 'password'),
    fill(form, _page, { user, password }) {
      const secret = form.fields.find(({ type }) => type === 'password')!
      const identifier = form.fields.find(
        ({ type, isReadOnly }) => ['text', 'email', 'tel'].includes(type) && !isReadOnly,
      )
      return submissionOf(form, {
        values: { ...(identifier && { [identifier.name]: user }), [secret.name]: password.reveal() },
        pressed: choice(form, 'sign_in') ?? form.buttons[0],
      })
    },
  },
  {
    name: 'the choice of an account',
    once: true,
    knows: (form) => choice(form, 'continue') !== undefined,
    fill: (form) => submissionOf(form, { pressed: choice(form, 'continue') }),
  },
  {
    name: 'the terms',
    once: true,
    knows: (form) => choice(form, 'agree') !== undefined,
    fill(form, page, { consent }) {
      if (!consent) throw new SignInFailed(`There are terms to agree to; --consent agrees. ${said(page)}`)
      return submissionOf(form, { pressed: choice(form, 'agree') })
    },
  },
  {
    name: 'the consent',
    once: true,
    knows: (form) => choice(form, 'allow') !== undefined,
    fill(form, page, { consent }) {
      if (!consent) throw new SignInFailed(`The application asks for consent; --consent gives it. ${said(page)}`)
      return submissionOf(form, { pressed: choice(form, 'allow') })
    },
  },
]

/** Redirects and pages together; more than any sign-in needs. */
const mostHops = 20

/** From page to page until the issuer sends the browser back to the application: the address it is sent to. */
export const walkPages = async (options: SignInOptions, first: Answer): Promise<URL> => {
  const { browser, issuer, redirectUri } = options
  const done = new Set<string>()
  let answer = first
  for (let hop = 0; hop < mostHops; hop += 1) {
    const { status, location } = answer
    if (status >= 300 && status < 400) {
      if (location === undefined) throw new SignInFailed(`The issuer answered ${status} without saying where to go on.`)
      if (leadsTo(location, redirectUri)) return location
      if (location.origin !== issuer.origin)
        throw new SignInFailed(`The sign-in goes on at ${location.origin}, which is not the issuer: it ends here.`)
      // 307 and 308 would repeat the body, with the password in it.
      if (status === 307 || status === 308) throw new SignInFailed(`The issuer answered ${status} to a form.`)
      answer = await browser.open(location)
      continue
    }
    answer = await submitPage(options, answer, done)
  }
  throw new SignInFailed(`After ${mostHops} requests the sign-in is not over.`)
}

const submitPage = async (options: SignInOptions, answer: Answer, done: Set<string>): Promise<Answer> => {
  const { url, status, page } = answer
  if (!page) throw new SignInFailed(`The issuer answered ${status} without a page.${errorIn(answer)}`)
  for (const step of [...(options.steps ?? []), ...steps]) {
    const form = page.forms.find((one) => one.method === 'post' && step.knows(one, options))
    if (!form) continue
    // The page again: what was entered is wrong, or not enough.
    if (step.once && done.has(step.name)) throw new SignInFailed(`The issuer shows ${step.name} again: ${said(page)}`)
    done.add(step.name)
    const target = form.action === '' ? url : URL.parse(form.action, url.href)
    if (target?.origin !== url.origin)
      throw new SignInFailed(`The form of ${step.name} leads to another host than the issuer's: nothing is sent there.`)
    return options.browser.submit(target, await step.fill(form, page, options))
  }
  const kind = status >= 400 ? 'a page that says' : 'a page that this command does not know'
  throw new SignInFailed(`The issuer answered ${status} with ${kind}: ${said(page)}`)
}

const said = ({ alerts, title, text }: HtmlPage): string => {
  const told = alerts.length > 0 ? alerts.join(' ') : text || title
  return told.length > 400 ? `${told.slice(0, 400)}…` : told
}

/** Same address; parameters of its own stay, the answer adds some. */
const leadsTo = (location: URL, redirectUri: string): boolean => {
  const wanted = new URL(redirectUri)
  return (
    location.protocol === wanted.protocol &&
    location.host === wanted.host &&
    location.pathname === wanted.pathname &&
    [...wanted.searchParams].every(([name, value]) => location.searchParams.getAll(name).includes(value))
  )
}
