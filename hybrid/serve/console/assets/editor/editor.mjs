// The SQL editor of the console: the parts of CodeMirror 6 that the Query page uses, and nothing else.
import {
  acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, completionStatus,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLDialect, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec, StateEffect, StateField } from "@codemirror/state";
import {
  crosshairCursor, Decoration, drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers, placeholder,
  rectangularSelection, tooltips,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

const styles = HighlightStyle.define([
  { tag: tags.keyword, class: "sql-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "sql-string" },
  { tag: [tags.number, tags.bool, tags.null], class: "sql-number" },
  { tag: tags.comment, class: "sql-comment" },
  { tag: tags.standard(tags.name), class: "sql-function" },
  { tag: tags.typeName, class: "sql-type" },
]);

const TAB_WAIT_MS = 120; // longer than completions are protected from accidental keys

const setError = StateEffect.define();
const setStatement = StateEffect.define();
const errorMark = Decoration.mark({ class: "sql-error" });
const statementLine = Decoration.line({ class: "sql-current" });

// The place of an error: it stays until the text changes.
const errorField = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    let next = transaction.docChanged ? Decoration.none : marks;
    for (const effect of transaction.effects) {
      if (effect.is(setError)) {
        next = effect.value === null ? Decoration.none : Decoration.set([errorMark.range(...effect.value)]);
      }
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

// The lines of the statement under the cursor, where the text has several.
const statementField = StateField.define({
  create: () => Decoration.none,
  update(lines, transaction) {
    let next = lines.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(setStatement)) next = linesOf(transaction.state, effect.value);
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function linesOf(state, range) {
  if (range === null) return Decoration.none;
  const marks = [];
  const last = state.doc.lineAt(Math.min(range[1], state.doc.length)).number;
  for (let number = state.doc.lineAt(Math.min(range[0], state.doc.length)).number; number <= last; number++) {
    marks.push(statementLine.range(state.doc.line(number).from));
  }
  return Decoration.set(marks);
}

// Tab takes a completion, also one that comes right now; else it leaves the editor, as in any form.
function takeCompletion(view) {
  if (acceptCompletion(view)) return true;
  if (completionStatus(view.state) === null) return false;
  setTimeout(() => acceptCompletion(view), TAB_WAIT_MS);
  return true;
}

// Replaces a selection by what is typed. Browsers would keep its style in attributes, which the page's policy refuses.
function typeOver(event, view) {
  if (event.inputType !== "insertText" || !event.data || event.isComposing || view.composing) return false;
  if (view.state.selection.ranges.length > 1) return false;
  const selected = document.getSelection(); // the editor hears of a new selection later than this event
  if (!selected?.rangeCount || selected.isCollapsed) return false;
  const target = selected.getRangeAt(0);
  const from = view.posAtDOM(target.startContainer, target.startOffset);
  const to = view.posAtDOM(target.endContainer, target.endOffset);
  if (from >= to) return false;
  event.preventDefault();
  const text = event.data;
  const insert = () => view.state.update({
    changes: { from, to, insert: text }, selection: { anchor: from + text.length }, userEvent: "input.type", scrollIntoView: true,
  });
  const handlers = view.state.facet(EditorView.inputHandler); // they close brackets and quotes
  if (!handlers.some((handler) => handler(view, from, to, text, insert))) view.dispatch(insert());
  return true;
}

function language(words) {
  const dialect = SQLDialect.define({
    keywords: words.keywords.join(" ").toLowerCase(),
    builtin: words.functions.join(" ").toLowerCase(),
    types: words.types.join(" ").toLowerCase(),
    identifierQuotes: '"',
    doubleQuotedStrings: false,
    hashComments: false,
    specialVar: "$",
    caseInsensitiveIdentifiers: true,
  });
  return sql({ dialect, upperCaseKeywords: false });
}

/**
 * Puts an editor into `parent`.
 *
 * @param {HTMLElement} parent
 * @param {object} options `text`, `nonce` of the page's content security policy, `label`, `placeholder`, `attributes` of
 *   the element that takes the text, `words` ({keywords, functions, types}), `complete(text, position, isExplicit)`,
 *   `onChange(text)`, `onCursor(position)`, `keys` ([{key, run}]).
 */
export function createEditor(parent, options) {
  const complete = async (context) => {
    const found = await options.complete(context.state.doc.toString(), context.pos, context.explicit);
    if (found === null || context.aborted) return null;
    return { from: found.from, options: found.options, validFor: /^[\w$"]*$/ };
  };
  const extensions = [
    EditorView.cspNonce.of(options.nonce ?? ""),
    Prec.highest(keymap.of(options.keys.map(({ key, run }) => ({ key, run: () => { run(); return true; } })))),
    lineNumbers(),
    highlightSpecialChars(),
    history(),
    drawSelection(),
    EditorState.allowMultipleSelections.of(true),
    rectangularSelection(),
    crosshairCursor(),
    bracketMatching(),
    closeBrackets(),
    indentUnit.of("  "),
    EditorView.lineWrapping,
    placeholder(options.placeholder ?? ""),
    tooltips({ position: "fixed" }),
    autocompletion({ override: [complete], icons: false, maxRenderedOptions: 60 }),
    language(options.words),
    syntaxHighlighting(styles),
    errorField,
    statementField,
    EditorView.contentAttributes.of({ "aria-label": options.label, spellcheck: "false", ...options.attributes }),
    EditorView.domEventHandlers({ beforeinput: typeOver }),
    keymap.of([
      { key: "Tab", run: takeCompletion },
      ...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...historyKeymap,
    ]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) options.onChange(update.state.doc.toString());
      if (update.docChanged || update.selectionSet) options.onCursor(update.state.selection.main.head);
    }),
  ];
  const stateOf = (text) => EditorState.create({ doc: text, extensions });
  const view = new EditorView({ parent, state: stateOf(options.text) });
  return {
    view,
    text: () => view.state.doc.toString(),
    cursor: () => view.state.selection.main.head,
    selection: () => [view.state.selection.main.from, view.state.selection.main.to],
    focus: () => view.focus(),
    insert: (position, text) => view.dispatch({ changes: { from: position, insert: text } }),
    /** The text with its cursor and undo steps, for `restore`. */
    state: () => view.state,
    /** Goes back to a state whose text is still `text`; else begins with that text. */
    restore(state, text) {
      if (state !== null && state.doc.toString() === text) view.setState(state);
      else if (view.state.doc.toString() !== text) view.setState(stateOf(text));
    },
    markError(from, to) {
      const length = view.state.doc.length;
      const start = Math.max(0, Math.min(from, length - 1));
      const end = Math.min(Math.max(to, start + 1), length);
      if (start < end) view.dispatch({ effects: [setError.of([start, end]), EditorView.scrollIntoView(start)] });
    },
    clearError: () => view.dispatch({ effects: setError.of(null) }),
    markStatement: (range) => view.dispatch({ effects: setStatement.of(range) }),
    destroy: () => view.destroy(),
  };
}
