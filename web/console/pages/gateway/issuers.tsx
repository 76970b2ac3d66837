import { useGateway } from '../../api/gateways.ts'
import { CopyInspectionCurl } from '../../components/inspection-curl.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Facts, Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { FullTime } from '../../components/time.tsx'

/** Whose tokens are taken, with which keys, and whether what was revoked is known. */
export const Issuers = ({ gateway }: { gateway: string }) => {
  const { data, error } = useGateway(gateway, 'issuers', {}, { everyMs: 5_000 })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  if (data.issuers.length === 0) return <p>There is none: every route is public.</p>
  return data.issuers.map(({ issuer, keys, problem, revocations }) => (
    <Section key={issuer} title={issuer} actions={<CopyInspectionCurl name="issuers" />}>
      {problem !== undefined && <Notice kind="bad">Its keys: {problem}</Notice>}
      {revocations?.problem !== undefined && <Notice kind="bad">What it revokes: {revocations.problem}</Notice>}
      <Facts
        facts={{
          Revocations: revocations ? (
            <Badge kind={revocations.problem === undefined ? 'good' : 'bad'}>followed</Badge>
          ) : (
            'not followed: a revoked token is taken until it expires'
          ),
          Revoked: revocations && `${revocations.entries.toLocaleString('en')} entries`,
          'Last heard of':
            revocations?.silent === undefined ? undefined : `${(revocations.silent / 1_000).toFixed(1)} s ago`,
        }}
      />
      <Rows
        title={`Keys of ${issuer}`}
        empty="No key is known yet: they are fetched with the first token."
        rows={keys.map(({ kid, alg, kty, since }) => ({
          key: kid,
          title: <code>{kid}</code>,
          facts: (
            <>
              {alg} ({kty}) · known here since <FullTime at={Date.parse(since)} />
            </>
          ),
        }))}
      />
    </Section>
  ))
}
