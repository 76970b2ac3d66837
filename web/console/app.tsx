import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useRef } from 'react'
import { matchRoute, Route, Switch, useLocation, useRouter } from 'wouter'
import { callConsole } from './api/call.ts'
import { isAllowed } from './api/operations.ts'
import { isProblem } from './api/problem.ts'
import { type Session, SessionContext } from './api/session.tsx'
import { signInAgain } from './api/sign-in.ts'
import { fetched } from './components/fetched.ts'
import { ProblemNotice } from './components/notice.tsx'
import { Loading, Page } from './components/page.tsx'
import { pages } from './pages.ts'
import { needOf } from './shell/console-page.ts'
import { ErrorBoundary } from './shell/error-boundary.tsx'
import { Guarded } from './shell/guarded.tsx'
import { Shell } from './shell/shell.tsx'

const Setup = fetched(() => import('./pages/setup/setup.tsx'))

/** Whoever has a session sees the pages; whoever has none signs in, or sets up the first owner. */
export const App = () => (
  <Switch>
    <Route path="/setup">
      <Setup />
    </Route>
    <Route>
      <SignedIn />
    </Route>
  </Switch>
)

const SignedIn = () => {
  const beginPage = useFirstPage()
  const { data: session, error } = useQuery({
    queryKey: ['session'],
    queryFn: ({ signal }) => {
      const session = callConsole<Session>('GET', '/session', undefined, signal)
      beginPage(session)
      return session
    },
    staleTime: 60_000,
    retry: false,
  })
  if (!session && isProblem(error) && error.status === 401) {
    signInAgain()
    return null
  }
  if (!session) return error ? <ProblemNotice error={error} /> : null
  return (
    <SessionContext value={session}>
      <Shell pages={pages}>
        <Switch>
          {pages.map(({ Page: Content, path, ...page }) => (
            <Route key={path} path={path}>
              {(params) => (
                <ErrorBoundary key={path}>
                  <Guarded need={needOf(page)}>
                    <Content params={params as Record<string, string>} meanwhile={<Loading />} />
                  </Guarded>
                </ErrorBoundary>
              )}
            </Route>
          ))}
          <Route>
            <Page
              title="There is no such page"
              lead="The address may be mistyped, or of another version of the console."
            />
          </Route>
        </Switch>
      </Shell>
    </SessionContext>
  )
}

/** The page of the address is fetched while it is asked whose session it is; then it asks, before all is painted. */
const useFirstPage = () => {
  const client = useQueryClient()
  const { parser } = useRouter()
  const [location] = useLocation()
  const isBegun = useRef(false)
  return (session: Promise<Session>) => {
    if (isBegun.current) return
    isBegun.current = true
    const begin = async () => {
      for (const { Page: First, path, ...page } of pages) {
        const [isIt, params] = matchRoute(parser, path, location)
        if (!isIt) continue
        const [{ ask }, { scopes }] = await Promise.all([First.fetch(), session])
        const need = needOf(page)
        if (need === undefined || isAllowed(need, scopes)) ask?.(client, params as Record<string, string>)
        return
      }
    }
    // What goes wrong is told where it is shown.
    begin().catch(() => {})
  }
}
