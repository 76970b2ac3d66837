import { useSearchParams } from 'wouter'
import { useChange } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { DialogActions } from '../../components/dialog.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { FilterBar } from '../../components/filters.tsx'
import { announce, Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Section } from '../../components/page.tsx'
import { exactTime, RelativeTime } from '../../components/time.tsx'
import type { Calls } from '../../generated/api.ts'
import { DeadLetters } from './dead-letters.tsx'
import { type ReplayBody, replayFilters, replayOf, replayStates } from './replay-filter.ts'

/** Sends again what a filter matches, whatever page of it is shown; how many that are comes first. */
export const Replays = ({ hookId }: { hookId: string }) => {
  const [search, setSearch] = useSearchParams()
  const body = replayOf(search)
  return (
    <>
      <Section
        title="Send again"
        lead="What matches is queued again with the same ids, in order for each entity, and before what is still to come."
      >
        <FilterBar filters={replayFilters} search={search} onChange={setSearch} />
        {/* Another filter has not been counted yet. */}
        <Counted key={JSON.stringify(body)} hookId={hookId} body={body} />
      </Section>
      <DeadLetters hookId={hookId} />
      <Section title="Sent again before">
        <Before hookId={hookId} />
      </Section>
    </>
  )
}

const Counted = ({ hookId: id, body }: { hookId: string; body: ReplayBody | undefined }) => {
  const params = { id }
  const count = useChange('createHookReplay')
  const send = useChange('createHookReplay')
  const total = count.data?.total
  if (!body) return <p>Narrow it down: what became of it, an event, an entity by kind and id, or a time.</p>
  const sendAgain = () =>
    send.mutate(
      { params, body },
      {
        onSuccess: () => {
          announce('It is queued again.')
          count.reset()
        },
      },
    )
  return (
    <>
      <ProblemNotice error={count.error ?? send.error} />
      {total !== undefined && (
        <Notice kind={total === 0 ? 'info' : 'warn'}>
          {total === 0 ? (
            'Nothing matches, or all of it is on its way already.'
          ) : (
            <p>
              <strong>{eventsOf(total)}</strong> would be sent again.
            </p>
          )}
        </Notice>
      )}
      <DialogActions>
        <CopyAsCurl operation="createHookReplay" input={{ params, body: { ...body, dryRun: total === undefined } }} />
        <Allowed operation="createHookReplay">
          <Button
            kind={total === undefined ? 'main' : 'quiet'}
            isPending={count.isPending}
            onPress={() => count.mutate({ params, body: { ...body, dryRun: true } })}
          >
            {total === undefined ? 'Count' : 'Count again'}
          </Button>
          {total !== undefined && total > 0 && (
            <Button kind="main" isPending={send.isPending} onPress={sendAgain}>
              Send {eventsOf(total)} again
            </Button>
          )}
        </Allowed>
      </DialogActions>
    </>
  )
}

type Replay = Calls['listHookReplays']['answer'][number]

const states: Readonly<Record<Replay['state'], { kind: 'plain' | 'good' | 'warn'; words: string }>> = {
  running: { kind: 'warn', words: 'under way' },
  done: { kind: 'good', words: 'done' },
  cancelled: { kind: 'plain', words: 'ended early' },
  dryRun: { kind: 'plain', words: 'only counted' },
}

/** While one is under way. */
const lookAgainMs = 1_000

const Before = ({ hookId: id }: { hookId: string }) => {
  const cancel = useChange('cancelHookReplay')
  return (
    <>
      <ProblemNotice error={cancel.error} />
      <EntityTable
        title="Sent again before"
        operation="listHookReplays"
        params={{ id }}
        everyMs={(rows) => (rows?.some(({ state }) => state === 'running') ? lookAgainMs : false)}
        columns={[
          { title: 'What', cell: ({ filter }) => wordsOf(filter) },
          {
            title: 'Queued',
            cell: ({ queued, total }) => `${queued.toLocaleString('en')} of ${total.toLocaleString('en')}`,
          },
          { title: 'State', cell: ({ state }) => <Badge kind={states[state].kind}>{states[state].words}</Badge> },
          { title: 'Asked for', isMinor: true, cell: ({ createdAt }) => <RelativeTime at={createdAt} /> },
          {
            title: 'Action',
            isMinor: true,
            cell: ({ id: replayId, state }) =>
              replayId !== null &&
              state === 'running' && (
                <Allowed operation="cancelHookReplay">
                  <Button isPending={cancel.isPending} onPress={() => cancel.mutate({ params: { id, replayId } })}>
                    End it
                  </Button>
                </Allowed>
              ),
          },
        ]}
        empty={<p>Nothing was sent again yet.</p>}
      />
    </>
  )
}

const wordsOf = ({ states: of, types, entity, since, until }: Replay['filter']): string =>
  [
    of.length === Object.keys(replayStates).length ? 'everything' : of.map((state) => replayStates[state]).join(', '),
    types && `${types.length > 3 ? `${types.length} kinds of events` : types.join(', ')}`,
    entity && `about ${entity.kind} ${entity.id}`,
    since !== undefined && `from ${exactTime(since)}`,
    until !== undefined && `until ${exactTime(until)}`,
  ]
    .filter(Boolean)
    .join(', ')

export const eventsOf = (count: number): string => `${count.toLocaleString('en')} ${count === 1 ? 'event' : 'events'}`
