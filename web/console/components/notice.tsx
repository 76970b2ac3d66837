import { type ReactNode, useSyncExternalStore } from 'react'
import { isProblem, type Problem } from '../api/problem.ts'
import { signInAgain } from '../api/sign-in.ts'
import { Icon } from '../design/icon.tsx'
import { Button } from './button.tsx'
import style from './notice.module.css'

/** Something to know before going on. */
export const Notice = ({
  kind = 'info',
  children,
}: {
  kind?: 'info' | 'good' | 'warn' | 'bad'
  children: ReactNode
}) => (
  <div className={`${style.notice} ${style[kind]}`}>
    <Icon name={kind === 'good' ? 'check' : kind === 'info' ? 'info' : 'warning'} />
    <div>{children}</div>
  </div>
)

/**
 * What the server refused, and why: sentence, code, and the id by which its operator finds it in the log. What it says
 * of members stands at those of `fields`.
 */
export const ProblemNotice = ({ error, fields = [] }: { error: unknown; fields?: readonly { path: string }[] }) => {
  if (!error) return null
  if (isProblem(error, 'console.step_up_required')) return <StepUp />
  if (isProblem(error, 'console.not_allowed')) return <Notice>{error.title}</Notice>
  const problem: Problem | undefined = isProblem(error) ? error : undefined
  const isAtFields =
    problem !== undefined &&
    problem.issues.length > 0 &&
    problem.issues.every((issue) => fields.some(({ path }) => `${issue.path}.`.startsWith(`${path}.`)))
  const detail = isAtFields
    ? 'The fields say what is wrong.'
    : problem
      ? problem.detail
      : error instanceof Error
        ? error.message
        : String(error)
  return (
    <div role="alert">
      <Notice kind="bad">
        <p>
          <strong>{problem?.title ?? 'This did not work.'}</strong> {detail !== problem?.title && detail}
        </p>
        {problem && (
          <p className={style.particulars}>
            <code>{problem.code}</code>
            {problem.requestId && (
              <>
                {' '}
                · request <code>{problem.requestId}</code>
              </>
            )}
          </p>
        )}
      </Notice>
    </div>
  )
}

const StepUp = () => (
  <Notice kind="warn">
    <p>This is shown to, and changed by, whoever has signed in within the last five minutes.</p>
    <Button kind="main" onPress={() => signInAgain({ stepUp: true })}>
      Sign in again
    </Button>
  </Notice>
)

export interface Announcement {
  text: string
  at: number
  /** Counts from 1 while the tab is open. */
  count: number
}

const kept = 50
let said: readonly Announcement[] = []
const listeners = new Set<() => void>()

/** Says in a corner, and to people who hear the page, what was done. It can be read again. */
export const announce = (text: string): void => {
  const count = (said[0]?.count ?? 0) + 1
  said = [{ text, at: Date.now(), count }, ...said].slice(0, kept)
  for (const tell of listeners) tell()
}

/** What was said in this tab, newest first. */
export const useAnnouncements = (): readonly Announcement[] =>
  useSyncExternalStore(
    (tell) => {
      listeners.add(tell)
      return () => listeners.delete(tell)
    },
    () => said,
  )

/** Where `announce` speaks; one for the whole page. */
export const Announcements = () => {
  const [last] = useAnnouncements()
  return (
    <div role="status" className={style.corner}>
      {last && (
        <span key={last.count} className={style.toast} data-passing="">
          {last.text}
        </span>
      )}
    </div>
  )
}
