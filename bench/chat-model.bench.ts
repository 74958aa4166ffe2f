/**
 * P8e and P8f: what the chat adds to a language model, beside a gateway for models that neither stores nor judges. The
 * model is the local one, so that its own time is small.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { root } from '../scripts/environment.ts'
import { bearer, eventually, newAgent } from '../test/harness/gateway.ts'
import { openModelWorld } from '../test/harness/model-world.ts'
import { creditTo } from './support/chat-credits.ts'
import { createEnvironment, startScript, startServer } from './support/environment.ts'
import { median, report } from './support/measure.ts'

const runs = 5
const asksPerRun = 40
const sentence = 'A word and another word of the model. '
const long = { sentences: 300, pieceCharacters: 6 }

console.log(
  JSON.stringify({
    section: 'Chats with a language model',
    about:
      'The local model answers at once. Portkey is `@portkey-ai/gateway` 1.15.2 in front of the same endpoint: it relays, and stores nothing. The chat accepts a task, holds credits, reads the words with the grammar, asks the model through the agent service, compares numbers by sentence and stores each piece before it is sent.',
  }),
)
const portkeyFile = join(
  root,
  'node_modules/.cache/portkey/node_modules/@portkey-ai/gateway/build/start-server.js',
)
if (!existsSync(portkeyFile))
  throw new Error(
    'npm install --ignore-scripts --prefix node_modules/.cache/portkey @portkey-ai/gateway@1.15.2 installs the baseline',
  )

await using environment = await createEnvironment()
const databaseUrl = await environment.newDatabase('chat_model')
const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
await using _closing = { [Symbol.asyncDispose]: () => pool.end() }
await using world = await openModelWorld()
await using gateway = await startServer('chat-server.ts', [databaseUrl, '', world.url])
await using portkey = await startScript(portkeyFile, (port) => [`--port=${port}`, '--headless'])

const script = (name: string, text: string, more: object) =>
  world.control('PUT', '/model/scripts', {
    name,
    contains: name,
    repeat: true,
    turns: [[{ type: 'text', text, ...more }]],
  })
await script('short', sentence.repeat(2), {})
await script('long', sentence.repeat(long.sentences), { piece: long.pieceCharacters })
const user = await newAgent(gateway.url)
await creditTo(pool, { url: gateway.url, agent: user }, 1_000_000)

type Answered = { firstMs: number; totalMs: number }
async function read(
  url: string,
  init: { headers: Record<string, string>; body: object },
  first: string,
): Promise<Answered> {
  const startMs = performance.now()
  const reply = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...init.headers },
    body: JSON.stringify(init.body),
  })
  if (reply.status !== 200 || !reply.body) throw new Error(`${url}: ${reply.status} ${await reply.text()}`)
  let firstMs = 0
  for await (const part of reply.body) {
    if (firstMs === 0 && Buffer.from(part).includes(first)) firstMs = performance.now() - startMs
  }
  if (firstMs === 0) throw new Error(`${url}: no words`)
  return { firstMs, totalMs: performance.now() - startMs }
}
const completion = (query: string) => ({
  model: 'local',
  stream: true,
  messages: [{ role: 'user', content: query }],
})
const direct = (query: string) =>
  read(
    `${world.url}/chat/completions`,
    { headers: { authorization: 'Bearer key' }, body: completion(query) },
    'word',
  )
const relayed = (query: string) =>
  read(
    `${portkey.url}/v1/chat/completions`,
    {
      headers: {
        authorization: 'Bearer key',
        'x-portkey-provider': 'openai',
        'x-portkey-custom-host': world.url,
      },
      body: completion(query),
    },
    'word',
  )
const ours = (query: string) =>
  read(`${gateway.url}/v1/chat`, { headers: bearer(user), body: { query } }, 'event: chunk')

await eventually(
  async () => (await relayed('short').catch(() => undefined)) && true,
  'the baseline is ready',
  30_000,
)

type Run = Record<'direct' | 'relayed' | 'ours', { first: number; total: number }>
async function measure(count: number): Promise<Run> {
  const firsts: Record<keyof Run, number[]> = { direct: [], relayed: [], ours: [] }
  const asks = { direct, relayed, ours }
  for (let at = 0; at < count; at++)
    for (const name of ['direct', 'relayed', 'ours'] as const)
      firsts[name].push((await asks[name]('short')).firstMs)
  const of = async (name: keyof Run) => ({
    first: median(firsts[name]),
    total: (await asks[name]('long')).totalMs,
  })
  return { direct: await of('direct'), relayed: await of('relayed'), ours: await of('ours') }
}
await measure(60)
const found: Run[] = []
for (let run = 0; run < runs; run++) found.push(await measure(asksPerRun))

report({
  id: 'P8e',
  name: 'p50 of the first words of an answer with a model, beyond the model asked directly',
  goal: '<= 50 ms',
  unit: 'ms',
  ratios: found.map((run) => run.ours.first - run.direct.first),
  met: (ms) => ms <= 50,
  annex: {
    portkey_ms: median(found.map((run) => run.relayed.first - run.direct.first)),
    model_ms: median(found.map((run) => run.direct.first)),
  },
})
report({
  id: 'P8f',
  name: `time of an answer of ${long.sentences} sentences at once, to the same answer through Portkey`,
  goal: '<= 1.5',
  ratios: found.map((run) => run.ours.total / run.relayed.total),
  met: (ratio) => ratio <= 1.5,
  annex: {
    ours_ms: median(found.map((run) => run.ours.total)),
    portkey_ms: median(found.map((run) => run.relayed.total)),
    model_ms: median(found.map((run) => run.direct.total)),
  },
})
