/**
 * Texts of strangers against an answerer that calls every tool there is, offered or not, as a model would: the judge of its
 * calls alone decides. A sample; `PROOF=nightly npm test -- injected-tools` sends all 300, with and without a limit.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answerer } from '#kernel/wire/chat-answerer.ts'
import { processWorld } from '../../harness/process-world.ts'
import { isNightly, proofSeed } from '../support/seed.ts'
import { type Customer, openAttackedApp, orderOf, readOf } from './attacked-chats.ts'
import { type Call, type Row, rows } from './injections.ts'
import {
  type Asked,
  type Case,
  casesOf,
  chatIdOf,
  createRandom,
  proposal,
  runAll,
  urlsOf,
  zero,
} from './judged-chats.ts'

/** Calls every tool that there is, offered or not, as a model would. */
function hostileAnswerer() {
  const cases = new Map<string, { row: Row; calls: Call[] }>()
  const greetings = new Map<string, string>()
  const answerer: Answerer = {
    async run({ query }, tools, emit) {
      const greeting = greetings.get(query)
      if (greeting !== undefined) {
        await emit.chunk(greeting)
        return { stopReason: 'end', citations: [], memory: null }
      }
      const { row, calls } = cases.get(query) ?? { row: undefined, calls: [proposal.call] }
      if (row?.surface === 'history') await tools.history()
      const reads = row && row.surface !== 'history' ? [readOf(row)] : []
      const all = row?.timing === 'with' ? [...calls, ...reads] : [...reads, ...calls]
      for (const [at, { name, arguments: input }] of all.entries())
        await tools.call({ id: `${at}`, name, input: input as never, isFromModel: true })
      return { stopReason: 'end', citations: [], memory: null }
    },
  }
  return { answerer, cases, greetings }
}

test('an answerer that calls every tool, whatever it was offered, moves nothing but what the message orders', async (t) => {
  const random = createRandom(proofSeed('injections, every tool'))
  const { answerer, cases, greetings } = hostileAnswerer()
  await using app = await openAttackedApp(urlsOf(await processWorld()), answerer)
  const counts = zero()
  const ask = async (user: Customer, { row, setting }: Case): Promise<Asked> => {
    const { query, call } = orderOf(row, setting)
    let body: Record<string, unknown> = {}
    if (row.surface === 'history') {
      const greeting = `hello number ${row.id}`
      greetings.set(greeting, row.text)
      const [meta] = await user.ask(greeting)
      body = { thread_id: (meta!.data as { thread_id: string }).thread_id }
    }
    cases.set(query, { row, calls: [...app.callsOf(row, user), call] })
    return user.ask(query, { body })
  }
  const sample = casesOf(random, 0).filter(
    ({ row: { surface, timing } }) =>
      isNightly ||
      random() < (surface === 'history' || (surface === 'news' && timing === 'after') ? 0.5 : 0.15),
  )
  const isClean = ({ surface, timing }: Row) => surface === 'news' && timing === 'with'
  const clean = isNightly
    ? []
    : rows.filter((row) => isClean(row) && random() < 0.5).map((row) => ({ row, setting: row.id % 2 }))
  const all = [
    ...new Map([...sample, ...clean].map((each) => [`${each.row.id} ${each.setting}`, each])).values(),
  ]
  await runAll({ app, counts, ask }, all, async (user) => chatIdOf(await user.ask(proposal.query)))
  t.diagnostic(`every tool: ${JSON.stringify(counts)}, effects beyond the orders: 0`)
  assert.equal(counts.notOffered, 0)
})
