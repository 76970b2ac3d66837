import { HighlightStyle } from '@codemirror/language'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

/** Colours of the page, in both themes. */
export const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: 'var(--main)' },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--warn)' },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName)], fontWeight: '600' },
  { tag: tags.comment, color: 'var(--soft)', fontStyle: 'italic' },
  { tag: tags.invalid, color: 'var(--bad)' },
])

export const look = EditorView.theme({
  '&': { minHeight: '220px', background: 'var(--field)', color: 'var(--text)' },
  '&.cm-focused': { outline: '2px solid var(--main)', outlineOffset: '-1px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', fontSize: 'var(--small)', lineHeight: '1.6', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--text)', padding: '12px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { background: 'var(--sunken)', color: 'var(--soft)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { background: 'var(--over)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'var(--tint)',
  },
  '&.cm-focused .cm-matchingBracket': { background: 'var(--tint)', outline: '1px solid var(--main)' },
  '.cm-tooltip': {
    border: '1px solid var(--line)',
    borderRadius: '8px',
    background: 'var(--card)',
    color: 'var(--text)',
    boxShadow: 'var(--float)',
    overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', fontSize: 'var(--small)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '4px 10px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    background: 'var(--tint)',
    color: 'var(--text)',
  },
  '.cm-completionDetail': { color: 'var(--soft)', fontStyle: 'normal' },
  '.cm-completionInfo': { padding: '8px 10px', maxWidth: '320px', fontFamily: 'var(--sans)' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
})
