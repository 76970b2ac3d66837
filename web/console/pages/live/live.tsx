import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { useGateways } from '../../api/gateways.ts'
import { Button } from '../../components/button.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { type Filter, FilterBar } from '../../components/filters.tsx'
import { GatewayNotices, NoGateways } from '../../components/gateway-notices.tsx'
import { CopyInspectionCurl } from '../../components/inspection-curl.tsx'
import { useKey } from '../../components/keys.ts'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Page } from '../../components/page.tsx'
import { DecisionList } from './decision-list.tsx'
import style from './live.module.css'
import { kept, useTail } from './use-tail.ts'

/** The requests of all gateways, as they are decided. */
const Live = () => {
  const { data: known, error } = useGateways()
  if (error) return <ProblemNotice error={error} />
  if (known?.gateways.length === 0) return <NoGateways title="Live" />
  // Nobody waits for a gateway that does not answer.
  return <Tail gateways={known?.gateways.map(({ name }) => name) ?? []} />
}

/** What the address may ask for, whether its control is there or not. */
const asked = ['verdict', 'route', 'subject', 'sid', 'gateway']

const filtersOf = (gateways: readonly string[]): readonly Filter[] => [
  {
    ...{ kind: 'choice', name: 'verdict', label: 'Verdict' },
    options: { allowed: 'Allowed', denied: 'Denied', failed: 'Failed' },
  },
  { kind: 'text', name: 'route', label: 'Route' },
  { kind: 'text', name: 'subject', label: 'Subject: id' },
  { kind: 'text', name: 'sid', label: 'Session: sid' },
  ...(gateways.length > 1
    ? [
        {
          ...{ kind: 'choice' as const, name: 'gateway', label: 'Gateway' },
          options: Object.fromEntries(gateways.map((name) => [name, name])),
        },
      ]
    : []),
]

const Tail = ({ gateways }: { gateways: readonly string[] }) => {
  const [search, setSearch] = useSearchParams()
  const filters = filtersOf(gateways)
  const filter = Object.fromEntries(asked.flatMap((name) => (search.get(name) ? [[name, search.get(name)!]] : [])))
  const [isPaused, setPaused] = useState(false)
  const [isLooking, setLooking] = useState(false)
  const { rows, waiting, isKnown, error, stream } = useTail(filter, isPaused || isLooking)
  const turn = () => setPaused(!isPaused)
  useKey({ keys: 'p', label: 'Pause, or go on' }, turn)
  const isFiltered = Object.keys(filter).length > 0
  return (
    <Page
      title="Live"
      lead="Every request that a gateway decides about. Open one to see why it ended as it did."
      actions={
        <>
          <CopyInspectionCurl name="decisions" input={{ query: filter }} />
          <Button onPress={turn}>{isPaused ? 'Go on' : 'Pause'}</Button>
        </>
      }
    >
      <FilterBar filters={filters} search={search} onChange={setSearch} />
      <ProblemNotice error={error} />
      <GatewayNotices gateways={stream.gateways} />
      {stream.lost > 0 && (
        <Notice kind="warn">
          {stream.lost.toLocaleString('en')} requests or more came faster than they could be told, and are not shown.
          Filters leave out what you do not look for.
        </Notice>
      )}
      <p className={style.state}>
        <StateBadge kind={isPaused ? 'paused' : stream.state} />
        <span>
          {waiting > 0
            ? `${waiting.toLocaleString('en')} new, shown when ${isPaused ? 'it goes on' : 'you leave the list'}`
            : `The last ${kept} are kept in this tab`}
        </span>
      </p>
      {rows.length === 0 && !isKnown && !error && <Loading lines={8} />}
      {rows.length === 0 && isKnown && (
        <EmptyPage icon="live" title={isFiltered ? 'No such request lately' : 'No request yet'}>
          {isFiltered
            ? 'Change or clear the filters: what fits appears here as it is decided.'
            : 'As soon as one reaches a gateway it stands here.'}
        </EmptyPage>
      )}
      {rows.length > 0 && <DecisionList rows={rows} areMany={gateways.length > 1} onLook={setLooking} />}
    </Page>
  )
}

const states = {
  connecting: { kind: 'plain', words: 'connecting' },
  open: { kind: 'good', words: 'live' },
  broken: { kind: 'warn', words: 'broken off, trying again' },
  ended: { kind: 'bad', words: 'ended: you may not read on' },
  paused: { kind: 'plain', words: 'paused' },
} as const

const StateBadge = ({ kind }: { kind: keyof typeof states }) => (
  <Badge kind={states[kind].kind}>{states[kind].words}</Badge>
)

export default Live
