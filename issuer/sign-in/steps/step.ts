import type { EventRequest } from '../../../events/outbox.ts'
import type { Query } from '../../../platform/database/database.ts'
import type { Form } from '../../base/read-form.ts'
import type { SignInExperience } from '../../directory/sign-in-experience/sign-in-experience.ts'
import type { InteractionState } from '../../interaction/interaction-state.ts'
import type { Interaction } from '../../interaction/interaction-store.ts'
import type { InteractionOperations } from '../../interaction/operations.ts'
import type { Standing } from '../../interaction/standing.ts'
import type { Step } from '../../interaction/step.ts'
import type { Visitor } from '../../interaction/visitor.ts'
import type { Locale, Page, PageProblem } from '../../pages/index.ts'
import type { FormToken } from '../forms/form-token.ts'

/** A step that is due, and what is known. */
interface StepDue {
  query: Query
  operations: InteractionOperations
  interaction: Interaction
  visitor: Visitor & { browser: string }
  situation: Standing['situation']
  step: Step
  settings: SignInExperience
  locale: Locale
}

/** A step as it is shown: what its page is about. */
export interface StepView extends StepDue {
  /** Where browsers reach the issuer, without scheme and port. */
  hostname: string
  requestId: string
  /** Where its forms are sent. */
  action: string
  /** The CSRF value of a form of this page. `subject`: whom it is about. */
  csrf(subject?: string): string
}

/** A form of this step that was sent. Whoever sends one of another step is shown what is due instead. */
export interface StepAnswer<Entered> extends StepDue {
  form: Form
  token: FormToken
  /** What events and the audit tell of this request. */
  request: EventRequest
  /** Before what waits for somebody outside: of forms with a password only so many are looked at at once. */
  releaseTurn(): void
  /** Notes what came of an attempt to prove something. */
  count(proof: string, outcome: string): void
  /** Keeps what was decided, and shows what is due then. */
  goOn(decision?: InteractionState): Promise<void>
  /** Shows the page of the step that is due again, with what was entered. Default status 400. */
  again(entered: Entered, status?: number): Promise<void>
  /** Back to the page, whatever is due there now. */
  reload(): Promise<void>
  /** Keeps what was decided, and shows nothing. */
  keep(decision: InteractionState): Promise<void>
  /** To an identity provider, from where the browser comes back. */
  leave(url: string): Promise<void>
  /** The interaction has ended: says why, and how to start again. */
  end(problem: PageProblem): Promise<void>
  /** A form that no page of ours sends. */
  refuse(): never
}

/** A page of signing in and what its buttons mean. `Entered` is what it shows again when something was wrong. */
export interface SignInStep<Entered> {
  /** Undefined when there is nobody any more whom the page is about. */
  show(view: StepView, entered?: Entered): Promise<Page | undefined>
  submit(answer: StepAnswer<Entered>): Promise<void>
  /** Of the page, when nothing was wrong with a form. Default 200. */
  status?: number
}

export const clientOf = ({ interaction: { client } }: Pick<StepView, 'interaction'>) => ({
  name: client.name,
  logoUri: client.logoUri,
})

/** What the pages of all steps have. */
export const pageOf = (view: StepView) => ({
  locale: view.locale,
  client: clientOf(view),
  action: view.action,
  csrf: view.csrf(),
})

/** Of a password, in bytes of UTF-8. */
export const maxPasswordBytes = 1_024
