/**
 * Writes docs/generated/chat-grammar.md from the frames of the grammar and from what it makes of the utterances in
 * test/proof/agent; with --check it only reports whether the page is current.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { concepts } from '../src/grammar/english/lexicon.ts'
import { indicatorWords } from '../src/grammar/english/nouns.ts'
import { inflected } from '../src/grammar/english/verbs.ts'
import { frames } from '../src/grammar/frames.ts'
import { topics } from '../src/grammar/help-topics.ts'
import { type Frame, isMutating } from '../src/grammar/intent-frame.ts'
import { heldOut, questions, type Row, readText } from '../test/proof/agent/corpus.ts'
import { type Grade, grade, mutationsOf, share } from '../test/proof/agent/grade.ts'
import { harmlessOf, paraphrasesOf } from '../test/proof/agent/paraphrases.ts'
import { root } from './environment.ts'
import { writeGenerated } from './generated-file.ts'

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
const code = (text: string): string => `\`${text}\``
const row = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`
const quoted = (examples: readonly string[]): string => examples.map((example) => `"${example}"`).join('; ')

const titles: Readonly<Record<string, string>> = {
  market: 'Markets',
  research: 'Research',
  portfolio: 'Portfolio',
  token: 'Tokens and chains',
  swap: 'Swaps and bridges',
  conditional: 'Orders that wait',
  perp: 'Perpetuals',
  'spot venue': 'Spot',
  earn: 'Vault',
  predictions: 'Prediction markets',
  account: 'Account',
  meta: 'Talk',
}
const effects: Readonly<Record<string, string>> = {
  none: 'calls nothing',
  read: 'reads',
  quote: 'quotes',
  trade: 'trades',
  move: 'moves money',
  tighten: 'cancels, closes or restricts',
}

const asked = ({ required = [] }: Frame): string =>
  required.map(({ name, anyOf = [name] }) => anyOf.map(code).join(' or ')).join(', ')
const called = ({ plan = [], route }: Frame): string => {
  const operations = [...new Set(plan.map(({ operation }) => operation))].map(code).join(', ')
  return route === undefined ? operations : `answered by ${route}`
}

const domain = (name: string): string[] => {
  const own = frames.filter((frame) => frame.domain === name)
  return [
    '',
    `## ${titles[name] ?? name}`,
    '| intent | what | slots | asked for | operations | examples |',
    '|---|---|---|---|---|---|',
    ...own.map((frame) =>
      row([
        code(frame.intent),
        `${frame.summary} (${effects[frame.effect] ?? frame.effect})`,
        frame.slots.map(code).join(', '),
        asked(frame),
        called(frame),
        quoted(frame.examples),
      ]),
    ),
  ]
}

const percent = (part: number): string => `${(100 * part).toFixed(1)} %`
const gradeAll = (rows: readonly Row[]): { row: Row; grade: Grade }[] =>
  rows.map((each) => ({ row: each, grade: grade(each, readText(each.text, each.thread)) }))

function measured(name: string, rows: readonly Row[]): string {
  const graded = gradeAll(rows)
  const grades = graded.map((each) => each.grade)
  const clear = graded.filter((each) => each.row.ask === undefined).map((each) => each.grade)
  const said = rows.flatMap((each) => paraphrasesOf(each).map(({ text }) => ({ ...each, text })))
  const others = gradeAll(said).map((each) => each.grade)
  const harmless = rows.flatMap(harmlessOf)
  const moved = harmless.filter(({ text }) => mutationsOf(readText(text)).length > 0).length
  const wrong = [...grades, ...others].filter(({ wrongMutations }) => wrongMutations.length > 0).length
  return row([
    name,
    String(rows.length),
    percent(share(grades, ({ isIntent }) => isIntent)),
    percent(share(grades, ({ areSlots }) => areSlots)),
    percent(1 - share(clear, ({ isNeedlessQuestion }) => !isNeedlessQuestion)),
    `${percent(share(others, ({ areSlots }) => areSlots))} of ${others.length}`,
    `${moved} of ${harmless.length}`,
    String(wrong),
  ])
}

/** Concepts that neither a frame nor the code names. Inflected verbs and indicators are read as classes. */
function unusedConcepts(): string[] {
  const folder = `${root}/src/grammar`
  const code = readdirSync(folder)
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => readFileSync(`${folder}/${name}`, 'utf8'))
    .join('\n')
  const named = new Set(code.match(/~?\w+/g))
  const read = { ...inflected, ...indicatorWords }
  return Object.keys(concepts).filter((concept) => !named.has(concept) && !Object.hasOwn(read, concept))
}

const refused = frames.filter(({ refusal }) => refusal !== undefined)
const orders = frames.filter(isMutating).map(({ intent }) => code(intent))

const text = [
  '# What the chat understands',
  '',
  `The chat reads English by a grammar of data: ${frames.length} intents with their slots, and a plan of operations for each (\`src/grammar\`). It needs no model, and it judges what a model proposes. This page is written by \`scripts/chat-grammar.ts\`; \`test/proof/agent\` has the utterances.`,
  '',
  '## Rules',
  `- An order (${orders.join(', ')}) is done only where it is an imperative of the user: its verb at the head of the clause, behind words of politeness, place or amount. What is quoted, reported, negated, supposed, asked, stated, or bound to a condition or a later time changes nothing. A limit order waits for a price, and for nothing else.`,
  '- Each number, asset, chain and id of an order has to have a place in it; one that has none is asked about. So is a missing slot, and a verb with a typing error. One question at a time, with at most four choices; its number, its words or a value answers it within ten minutes.',
  '- Several orders in one message are done in the order in which they are said, five at most. While one of them is open, refused or not understood, none is done.',
  '- A short message completes or changes the last one for thirty minutes: "and on base?", "make it 50", "no, eth", "do it" after a quote. It never repeats an order.',
  '- The chain that is not said is the one where the wallet has most of what is paid. A share of a token that lies on several chains is asked about.',
  '- Each number of an answer has the operation and the JSON pointer that it came from.',
  '- A proposal of a model is allowed where the grammar would make the same call from the words of the user, or one for less: no other asset, side, chain, stop or recipient, and each order once.',
  ...Object.keys(titles).flatMap(domain),
  '',
  '## Not offered',
  '| intent | what | answer | example |',
  '|---|---|---|---|',
  ...refused.map((frame) =>
    row([code(frame.intent), frame.summary, frame.refusal ?? '', quoted(frame.examples.slice(0, 1))]),
  ),
  '',
  '## Explained terms',
  `${Object.keys(topics).map(code).join(', ')}.`,
  '',
  '## What was measured',
  'Paraphrases are made by rule: capitals, politeness, greetings, spaces, another order of words, typing errors. Harmless utterances hold an order that is negated, quoted, reported, supposed, asked about, conditional or set for later; the count is of those that moved something. The held-out utterances were written from the list of operations before the lexicon existed, by its author. Their first reading had 86.7 % of the intents and 84.0 % of the slots right, and 3 mutations that differed from what was asked for; the lexicon was then corrected by the other set, with these totals in view. Of the held-out utterances only the orders that moved something wrongly were looked at: two, and variants of a third. So these are figures of regressions; strangers will be understood less well. A third set, `asked.jsonl`, is asked at the front door of a gateway with its local world, and each number of the answers is compared with the nodes, the venue, the prices and the solver.',
  '',
  '| set | utterances | intent | all slots | needless questions | paraphrases | harmless ones that moved | wrong mutations |',
  '|---|---|---|---|---|---|---|---|',
  measured('questions', questions),
  measured('held out', heldOut),
  '',
].join('\n')

const unused = unusedConcepts()
if (unused.length > 0) {
  console.error(`Nothing names these concepts of the lexicon: ${unused.join(', ')}.`)
  process.exitCode = 1
}
writeGenerated({ file: 'docs/generated/chat-grammar.md', text, source: 'the grammar' })
