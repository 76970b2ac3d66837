import { useEffect, useState } from 'react'
import { curlOf } from '../api/curl.ts'
import type { Input, OperationId } from '../api/operations.ts'
import { useSession } from '../api/session.tsx'
import { Button } from './button.tsx'
import style from './copy.module.css'
import { announce } from './notice.tsx'

/** Puts a text into the clipboard, and says so. */
export const CopyButton = ({ text, label, children }: { text: string; label: string; children?: string }) => {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 2_000)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    announce('Copied.')
  }
  return (
    <Button icon={copied ? 'check' : 'copy'} kind="plain" label={label} onPress={copy}>
      {children}
    </Button>
  )
}

/** The call that an action of the page makes, for a shell. */
export const CopyAsCurl = <Id extends OperationId>({ operation, input }: { operation: Id; input?: Input<Id> }) => {
  const { baseUrl } = useSession()
  return (
    <CopyButton text={curlOf(operation, input ?? {}, baseUrl)} label={`Copy as curl: ${operation}`}>
      curl
    </CopyButton>
  )
}

/** Text to be copied as it stands: a command, a snippet, a value that is shown once. */
export const CopyableText = ({ text, label }: { text: string; label: string }) => (
  <div className={style.copyable}>
    {/* Long lines are moved sideways, by the keyboard too. */}
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached */}
    <section tabIndex={0} aria-label={label}>
      <pre>
        <code>{text}</code>
      </pre>
    </section>
    <CopyButton text={text} label={`Copy ${label}`} />
  </div>
)

/** An id, short enough to be read beside others, whole when copied. */
export const EntityId = ({ id }: { id: string }) => (
  <span className={style.id}>
    <code title={id}>{id}</code>
    <CopyButton text={id} label={`Copy the id ${id}`} />
  </span>
)
