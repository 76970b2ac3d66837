import { autocompletion, type CompletionContext, closeBrackets, completionKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { javascript, localCompletionSource } from '@codemirror/lang-javascript'
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting, syntaxTree } from '@codemirror/language'
import { type Diagnostic, linter } from '@codemirror/lint'
import { Annotation, EditorState } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { useEffect, useEffectEvent, useRef } from 'react'
import style from './code-editor.module.css'
import { colours, look } from './code-editor-look.ts'
import { rego } from './code-editor-rego.ts'
import type { CodeLanguage, Suggestion } from './field.ts'

export interface CodeEditorProps {
  label: string
  value: string
  isReadOnly: boolean
  /** What may follow `context.user.`: the members of what stands before the last dot. */
  suggest?: ((before: string) => readonly Suggestion[]) | undefined
  /** Default JavaScript. */
  language?: CodeLanguage | undefined
  onChange(value: string): void
}

/**
 * An editor of JavaScript, Rego or JSON. It stands in a shadow root: there the browser takes its styles as objects,
 * and the page needs no exception from its policy.
 */
const CodeEditor = ({ label, value, isReadOnly, suggest, language = 'javascript', onChange }: CodeEditorProps) => {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const changed = useEffectEvent(onChange)
  const members = useEffectEvent((before: string) => suggest?.(before) ?? [])
  const first = useEffectEvent(() => value)
  useEffect(() => {
    const element = host.current!
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' })
    const editor = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: first(),
        extensions: [
          ...[lineNumbers(), history(), drawSelection(), highlightActiveLine(), indentOnInput(), indentUnit.of('  ')],
          ...[bracketMatching(), closeBrackets(), syntaxHighlighting(colours), look],
          // Nothing is scrolled in it: what is would have to be reached by the keyboard apart.
          EditorView.lineWrapping,
          language === 'rego' ? rego : javascript(),
          // JSON is an expression of JavaScript, and no program.
          language === 'javascript'
            ? [autocompletion({ override: [pathCompletion(members), localCompletionSource] }), linter(syntaxErrors)]
            : [],
          // Tab leaves the editor, as everywhere on the page.
          keymap.of([...completionKeymap, ...historyKeymap, ...defaultKeymap]),
          typeOverSelection,
          EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
          EditorState.readOnly.of(isReadOnly),
          EditorView.updateListener.of((update) => {
            const isTyped = !update.transactions.some((one) => one.annotation(fromOutside))
            if (update.docChanged && isTyped) changed(update.state.doc.toString())
          }),
        ],
      }),
    })
    view.current = editor
    return () => editor.destroy()
  }, [label, isReadOnly, language])
  // Discarded, or changed elsewhere.
  useEffect(() => {
    const editor = view.current!
    const text = editor.state.doc.toString()
    if (text !== value)
      editor.dispatch({
        changes: { from: 0, to: text.length, insert: value },
        annotations: fromOutside.of(true),
      })
  }, [value])
  return <div ref={host} className={style.editor} />
}

/** Of a change that nobody typed: it is no draft. */
const fromOutside = Annotation.define<boolean>()

/** Browsers keep the look of what is typed over, by styles that the policy of the page refuses. */
const typeOverSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { inputType, data } = event
    if (inputType !== 'insertText' || !data || view.composing || view.state.selection.main.empty) return false
    event.preventDefault()
    view.dispatch(view.state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true })
    return true
  },
})

const pathCompletion = (members: (before: string) => readonly Suggestion[]) => (context: CompletionContext) => {
  const path = context.matchBefore(/[\w$?.[\]]*/)
  if (!path || (path.text === '' && !context.explicit)) return null
  const dot = path.text.lastIndexOf('.')
  const options = members(dot < 0 ? '' : path.text.slice(0, dot))
  return {
    from: path.from + dot + 1,
    options: options.map(({ name, type, says }) => ({ label: name, detail: type, ...(says && { info: says }) })),
    validFor: /^\w*$/,
  }
}

/** Where the text is no JavaScript. */
const syntaxErrors = (view: EditorView): Diagnostic[] => {
  const found: Diagnostic[] = []
  syntaxTree(view.state).iterate({
    enter({ type, from, to }) {
      if (type.isError && found.length < 20)
        found.push({ from, to: Math.max(to, from + 1), severity: 'error', message: 'This is no JavaScript.' })
    },
  })
  return found.filter(({ to }) => to <= view.state.doc.length)
}

export default CodeEditor
