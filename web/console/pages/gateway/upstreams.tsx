import { useGateway } from '../../api/gateways.ts'
import { CopyInspectionCurl } from '../../components/inspection-curl.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'

const states = {
  in: { kind: 'good', words: 'in use' },
  out: { kind: 'bad', words: 'out' },
  used: { kind: 'warn', words: 'used though it is out' },
} as const

/** How often what is shown is asked for while somebody looks. In ms. */
const everyMs = 5_000

/** The APIs behind the gateway, with what answers for each and how it is. */
export const Upstreams = ({ gateway }: { gateway: string }) => {
  const { data, error } = useGateway(gateway, 'upstreams', {}, { everyMs })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  if (data.upstreams.length === 0) return <p>There is none: the gateway decides for other proxies only.</p>
  return data.upstreams.map(({ name, balance, running, overdrawn, targets, names }) => (
    <Section
      key={name}
      title={name}
      lead={`${typeof balance === 'string' ? balance : `by hash of ${balance.hash}`} · ${running} under way`}
      actions={<CopyInspectionCurl name="upstreams" />}
    >
      {overdrawn && <Notice kind="warn">All targets are used, because too many would be out.</Notice>}
      {names
        .filter(({ problem }) => problem !== undefined)
        .map(({ host, problem }) => (
          <Notice key={host} kind="warn">
            {host} cannot be resolved ({problem}): its last addresses are used.
          </Notice>
        ))}
      <Rows
        title={`Targets of ${name}`}
        empty="No target has an address yet."
        rows={targets.map((target) => ({
          key: target.name,
          title: target.name,
          facts: (
            <>
              {target.health === 'unknown' ? 'not checked' : target.health}
              {target.reason && `: ${target.reason}`}
              {target.ejectedForMs !== undefined && ` · ejected for ${Math.ceil(target.ejectedForMs / 1_000)} s`}
              {target.ejections > 0 && ` · ejected ${target.ejections} times`} · {target.running} under way ·{' '}
              {target.answered.toLocaleString('en')} answered, {target.failed.toLocaleString('en')} failed
              {targets.length > 1 && ` · share ${Math.round(target.share * 100)} %`}
            </>
          ),
          actions: <Badge kind={states[target.state].kind}>{states[target.state].words}</Badge>,
        }))}
      />
    </Section>
  ))
}
