import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { useAskGateway } from '../../api/gateways.ts'
import { editing, evaluating } from '../../api/inspecting.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button, RefusalContext } from '../../components/button.tsx'
import { CopyableText } from '../../components/copy.tsx'
import { Fields } from '../../components/fields.tsx'
import { announce, Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Facts, Section } from '../../components/page.tsx'
import type { Inspection } from '../../generated/inspection.ts'
import { CopyInspectionCurl } from '../gateway/inspection-curl.tsx'
import { type Candidates, cannotSaveTogether, isTest, useCandidates } from './candidates.ts'
import { patchOf } from './patch.ts'
import style from './policies.module.css'
import { TrialResult } from './trial-result.tsx'

export type Policies = Inspection['policies']['answer']

/** The files of the folder, and what is written in their place. */
export const Files = ({ gateway, policies }: { gateway: string; policies: Policies }) => {
  const candidates = useCandidates(gateway, policies.files)
  const [search] = useSearchParams()
  const paths = [...new Set([...policies.files.map(({ path }) => path), ...Object.keys(candidates.texts)])].sort()
  const wanted = search.get('file')
  const current = paths.find((path) => path === wanted) ?? paths.find((path) => path.endsWith('.rego') && !isTest(path))
  const linkTo = (path: string) => {
    const query = new URLSearchParams(search)
    query.set('file', path)
    return `/policies?${query}`
  }
  if (policies.kind === 'bundle')
    return (
      <Section title="Files" lead="The policies are a bundle, which is built elsewhere: there are no files to see.">
        <State policies={policies} />
      </Section>
    )
  return (
    <>
      <Section
        title="Files"
        lead="As they are in the folder of the gateway."
        actions={<CopyInspectionCurl name="policies" />}
      >
        <State policies={policies} />
        {policies.problem && <Notice kind="warn">{policies.problem}</Notice>}
        <nav className={style.files} aria-label="Files">
          {paths.map((path) => (
            <Link key={path} href={linkTo(path)} {...(path === current && { 'aria-current': 'page' })}>
              {path}
              {Object.hasOwn(candidates.texts, path) && <Badge kind="warn">changed</Badge>}
            </Link>
          ))}
        </nav>
        <NewFile taken={paths} onName={(path) => candidates.write(path, 'package surrogate.gateway\n')} />
        {current !== undefined && <File key={current} path={current} {...{ candidates, policies }} />}
      </Section>
      <Changes {...{ gateway, policies, candidates }} />
    </>
  )
}

const State = ({ policies: { revision, inForce, entrypoints, canSave, cannotSave } }: { policies: Policies }) => (
  <Facts
    facts={{
      'In force': (
        <>
          <code>{revision}</code> {inForce === false && <Badge kind="warn">other files than those in the folder</Badge>}
        </>
      ),
      Entrypoints: entrypoints.join(', '),
      Saving: canSave ? 'Allowed' : cannotSave,
    }}
  />
)

const NewFile = ({ taken, onName }: { taken: readonly string[]; onName(path: string): void }) => {
  const [name, setName] = useState('')
  const isGood = /^(?:[\w][\w.-]*\/)*[\w][\w.-]*\.rego$/.test(name) && !taken.includes(name)
  return (
    <form
      className={style.line}
      onSubmit={(event) => {
        event.preventDefault()
        if (isGood) onName(name)
        setName('')
      }}
    >
      <Fields
        fields={[{ path: 'name', label: 'New file', isCode: true, placeholder: 'refunds.rego', autoComplete: 'off' }]}
        values={{ name }}
        onChange={(_, value) => setName(String(value))}
      />
      <Button type="submit" icon="plus" isDisabled={!isGood}>
        Add
      </Button>
    </form>
  )
}

const File = ({ path, candidates, policies }: { path: string; candidates: Candidates; policies: Policies }) => {
  const file = policies.files.find((one) => one.path === path)
  const isChanged = Object.hasOwn(candidates.texts, path)
  const text = isChanged ? candidates.texts[path] : file?.text
  if (text === undefined)
    return (
      <Notice>{path.endsWith('.rego') ? 'It is too long, or elsewhere.' : 'What data files hold is not shown.'}</Notice>
    )
  return (
    <div className={style.file}>
      {text === null ? (
        <Notice kind="warn">This file goes.</Notice>
      ) : (
        <Fields
          fields={[{ path: 'text', label: path, kind: 'code', language: 'rego', isFixed: !policies.canTry }]}
          values={{ text }}
          onChange={(_, value) => candidates.write(path, String(value))}
        />
      )}
      <div className={style.actions}>
        {isChanged && (
          <Button icon="cross" onPress={() => candidates.forget(path)}>
            Discard
          </Button>
        )}
        {text !== null && policies.canTry && file && (
          <Button kind="plain" onPress={() => candidates.write(path, null)}>
            Take this file away
          </Button>
        )}
      </div>
    </div>
  )
}

/** What was written: tried, copied as a patch, saved where that is allowed. */
const Changes = ({
  gateway,
  policies,
  candidates,
}: {
  gateway: string
  policies: Policies
  candidates: Candidates
}) => {
  const attempt = useAskGateway('try')
  const save = useAskGateway('save')
  const client = useQueryClient()
  const { changes, texts, saved, outdated } = candidates
  const cannotSave = policies.cannotSave ?? cannotSaveTogether(Object.keys(texts))
  const isEmpty = changes.length === 0
  const run = () => attempt.mutate({ gateway, body: { files: texts, decisions: 1_000 } })
  const put = () =>
    save.mutate(
      { gateway, body: { files: saved } },
      {
        onSuccess: () => {
          announce('Saved.')
          candidates.forget()
          void client.invalidateQueries()
        },
      },
    )
  return (
    <Section
      title="What you have written"
      lead={
        isEmpty
          ? 'Nothing yet. The files as they are can be tried: compiled, tested, and compared by the last 1 000 decisions.'
          : `${changes.length === 1 ? 'One file' : `${changes.length} files`}: ${changes.map(({ path }) => path).join(', ')}. Kept in this tab, and compared with the rules in force by the last 1 000 decisions.`
      }
    >
      {outdated.length > 0 && (
        <Notice kind="warn">
          {outdated.join(', ')}: somebody has changed it since you began. Discard, or copy the patch.
        </Notice>
      )}
      <div className={style.actions}>
        <Allowed operation={evaluating}>
          <Button kind="main" icon="check" isPending={attempt.isPending} isDisabled={!policies.canTry} onPress={run}>
            Compile, test, compare
          </Button>
        </Allowed>
        <Allowed operation={editing}>
          <SaveButton
            because={isEmpty ? undefined : cannotSave}
            isEmpty={isEmpty}
            isPending={save.isPending}
            onPress={put}
          />
        </Allowed>
        {!isEmpty && (
          <Button icon="cross" onPress={() => candidates.forget()}>
            Discard all
          </Button>
        )}
      </div>
      <ProblemNotice error={save.error ?? attempt.error} />
      {!isEmpty && <CopyableText label="patch" text={patchOf(changes)} />}
      {attempt.data && <TrialResult answer={attempt.data} />}
    </Section>
  )
}

const SaveButton = ({
  because,
  isEmpty,
  ...rest
}: {
  because: string | undefined
  isEmpty: boolean
  isPending: boolean
  onPress(): void
}) => {
  const button = (
    <Button {...rest} isDisabled={isEmpty}>
      Save to the folder
    </Button>
  )
  return because === undefined ? button : <RefusalContext value={because}>{button}</RefusalContext>
}
