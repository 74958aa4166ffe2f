/** Sources that break one rule each, and sources that break none: they prove that the rules work. */
export type RuleFixture = { rule: string; path: string; bad?: string[]; good?: string[] }

const lines = (count: number, line: string) => Array.from({ length: count }, () => line).join('\n')

const longFunction = (head: string, tail: string) => `${head}\n${lines(120, '  call()')}\n${tail}\n`

const imports: RuleFixture[] = [
  {
    rule: 'reach',
    path: 'src/features/perp/perp.ts',
    bad: [
      `import { call } from '#durable/run-operation.ts'`,
      `import {\n  call,\n  type Caller,\n} from '#durable/run-operation.ts'`,
      `import { type Call } from '#durable/run-operation.ts'`,
      `import '#durable/run-operation.ts'`,
      `export { call } from '#durable/run-operation.ts'`,
      `export * from '#durable/run-operation.ts'`,
      `const { call } = await import('#durable/run-operation.ts')`,
      `const text = \`\${await import('#durable/run-operation.ts')}\``,
      `import { createRequire } from 'node:module'\nconst load = createRequire(import.meta.url)\nload('#durable/run-operation.ts')`,
      `import { createRequire } from 'node:module'\ncreateRequire(import.meta.url)('#durable/run-operation.ts')`,
      `const at = import.meta.resolve('#durable/run-operation.ts')`,
      `import { earn } from '#features/earn/earn.ts'`,
      `import { client } from '#sdk/client.ts'`,
      `import type { App } from '#app.ts'`,
      `import { world } from '#world/world.ts'`,
      `import type { World } from '#world/world.ts'`,
      `type World = import('#world/world.ts').World`,
      `import { earn } from '../earn/earn.ts'`,
      `import { size } from '#features/perp/sizing.ts'`,
      `import { size } from './sizing'`,
      `const part = await import(name)`,
      `import { test } from 'node:test'`,
      `import { readFile } from 'fs/promises'`,
      `import pg from 'pg'`,
      `import { createPublicClient } from 'viem'`,
      `import fc from 'fast-check'`,
      `import left from 'left-pad'`,
    ],
    good: [
      `import type { Call } from '#durable/run-operation.ts'\nimport type { Earn } from '#features/earn/earn.ts'\nexport type { Call } from '#durable/run-operation.ts'\nimport { Fault } from '#kernel/fault.ts'\nimport { size } from './sizing.ts'\nimport { database } from '#store/database.ts'`,
      `type Call = typeof import('#durable/run-operation.ts').call`,
      `// import { call } from '#durable/run-operation.ts'\nconst text = "import x from '#world/x.ts'"\nconst shape = /import '#world'/`,
      `const text = \`import '#world/x.ts' \${\`import '#world/x.ts' \${1}\`} import '#world/x.ts'\``,
      `import { Type } from 'typebox'\nimport { sql } from 'kysely'\nimport { readFile } from 'node:fs/promises'`,
      `export const read = (list: List) => list.import('#world/x.ts')`,
    ],
  },
  {
    rule: 'reach',
    path: 'src/kernel/money.ts',
    bad: [`import { readFile } from 'node:fs/promises'`, `import { a } from '#store/database.ts'`],
    good: [`import { createHash } from 'node:crypto'\nimport { Type } from 'typebox'`],
  },
  {
    rule: 'reach',
    path: 'src/kernel/money.test.ts',
    bad: [`import { anvil } from '@foundry-rs/anvil'`],
    good: [`import fc from 'fast-check'\nimport { test } from 'node:test'\nimport { a } from './money.ts'`],
  },
  {
    rule: 'reach',
    path: 'src/upstreams/evm/evm.ts',
    bad: [
      `import type { Wire } from '#upstreams/solana/wire.ts'`,
      `import { anvil } from '#world/evm/anvil.ts'`,
    ],
    good: [`import { createPublicClient } from 'viem'\nimport { a } from './wire.ts'`],
  },
  {
    rule: 'reach',
    path: 'src/world/evm/evm.ts',
    bad: [`import { Fault } from '#kernel/fault.ts'`, `import type { Money } from '#kernel/money.ts'`],
    good: [`import { book } from '#world/venue-core/book.ts'\nimport { anvil } from '@foundry-rs/anvil'`],
  },
  {
    rule: 'reach',
    path: 'src/sdk/client.ts',
    bad: [`import { perp } from '#features/perp/perp.ts'`],
    good: [`import { contract } from '#features/perp/contract.ts'`],
  },
  { rule: 'reach', path: 'src/edges/http/http.ts', bad: [`import { perp } from '#features/perp/perp.ts'`] },
  { rule: 'reach', path: 'src/edges/http/web.ts', bad: [`import { anvil } from '@foundry-rs/anvil'`] },
  { rule: 'reach', path: 'src/edges/grpc/grpc.ts', bad: [`export const grpc = 1`] },
  {
    rule: 'reach',
    path: 'src/main.ts',
    bad: [`import { world } from '#world/world.ts'`, `import '#world/world.ts'`],
    good: [`const { world } = await import('#world/world.ts')\nimport type { World } from '#world/world.ts'`],
  },
  { rule: 'reach', path: 'src/anywhere.ts', bad: [`export const anywhere = 1`] },
  { rule: 'reach', path: 'src/store/embedded.ts', good: [`const part = await import(name)`] },
  {
    rule: 'reach',
    path: 'src/app.ts',
    good: [`import { call } from '#durable/run-operation.ts'\nimport pg from 'pg'`],
  },
]

const shapes: RuleFixture[] = [
  { rule: 'runs', path: 'src/kernel/a.ts', bad: [`enum Side { buy, sell }`, `const a: = 1`] },
  { rule: 'names', path: 'src/kernel/string-utils.ts', bad: [`export const a = 1`] },
  { rule: 'names', path: 'src/kernel/index.ts', bad: [`export const a = 1`] },
  { rule: 'names', path: 'src/features/common/fees.ts', bad: [`export const a = 1`] },
  { rule: 'names', path: 'test/journeys/openAPerp.test.ts', bad: [`export const a = 1`] },
  { rule: 'names', path: 'src/kernel/base-units.ts', good: [`export const a = 1`] },
  { rule: 'forbiddenNames', path: 'src/durable/turns.ts', bad: [`export const a = 1`] },
  { rule: 'forbiddenNames', path: 'test/venue/stage.test.ts', bad: [`export const a = 1`] },
  { rule: 'forbiddenNames', path: 'src/features/perp/turns.ts', good: [`export const a = 1`] },
  {
    rule: 'forbiddenNames',
    path: 'src/engines/venue/orders/a.ts',
    bad: [
      `export const keyedTurns = 1`,
      `export type Needs = { a: string }`,
      `const row = { lifted_by: 1 }`,
      `const heardFills = 1`,
      `const a = { task_told: 1 }`,
      `if (outcome.type === 'dead') end()`,
      `// The waiter is told of the end`,
      `/** First line.\n * Whoever placed the order. */`,
      `throw new Error('the task is told to end')`,
      `const says = \`a \${name} that mends\``,
    ],
    good: [
      `// The waiter is notified of the end\nconst lookUp = { type: 'expired' }`,
      `const stands4 = 1\nconst text = 'dead letter'`,
    ],
  },
  { rule: 'forbiddenNames', path: 'src/invoke/a.ts', good: [`const name = 'refused'`] },
  {
    rule: 'size',
    path: 'src/kernel/a.ts',
    bad: [
      lines(351, 'export const a = 1'),
      longFunction('export function a() {', '}'),
      longFunction('export async function* a(b: string): AsyncGenerator<string> {', '}'),
      longFunction('export const a = (b: number): Promise<number> => {', '}'),
      longFunction('export const a = async b => {', '}'),
      longFunction('export const a = {\n  async b(c: string) {', '} }'),
      `export const a = () =>\n  list\n${lines(120, '    .map((x) => x)')}\n`,
      `export const a = () => ({\n${lines(120, '    b: 1,')}\n})\n`,
      `export const a = () => {\n  b(() => {\n${lines(120, '    call()')}\n  })\n}\n`,
      `export const a = () => {\n  b(() => {\n    call()\n  })\n${lines(120, '  call()')}\n}\n`,
      `export const a = () => {\n${lines(60, '  const b = () => {\n    call()\n  }')}\n}\n`,
    ],
    good: [
      lines(350, 'export const a = 1'),
      `export const a = [\n${lines(100, "  '{',")}\n]`,
      `export const a = () => 1\n${lines(100, 'export const b = 1')}`,
      `if (a) {\n${lines(100, '  call()')}\n}`,
    ],
  },
  {
    rule: 'noPacking',
    path: 'src/kernel/a.ts',
    bad: [
      'const a = { ...{ b, c }, d }',
      'const a = [...[b, c], d]',
      "const a = [...(['b', 'c'] as const), d]",
      'call(...[a, b])',
      'const a = {\n  d,\n  ...{ b, c },\n}',
    ],
    good: [
      'const a = { ...b, ...(c && { d: 1 }), ...(c ? { d: 1 } : {}) }',
      'const a = [...[b, c].map((x) => x), ...(c ? [d] : [])]',
      'const a = [...([b, c] as const).map((x) => x)]',
    ],
  },
  { rule: 'size', path: 'src/features/perp/contract.ts', good: [lines(400, 'export const a = 1')] },
  {
    rule: 'noAny',
    path: 'src/kernel/a.ts',
    bad: [
      `const a: any = 1`,
      `const a = b as any`,
      `const a: Array<any> = []`,
      `function a(b: Record<string, any>) {}`,
    ],
    good: [`// any\nconst any = 1\nconst a = { any: 'any' }\nPromise.any([any])`],
  },
  {
    rule: 'noDefaultExport',
    path: 'src/kernel/a.ts',
    bad: [`export default 1`, `const a = 1\nexport { a as default }`],
    good: [`export const text = 'export default'`],
  },
  {
    rule: 'typeNotInterface',
    path: 'src/kernel/a.ts',
    bad: [`export interface A { b: string }`],
    good: [`declare module 'fastify' {\n  interface FastifyRequest { caller: string }\n}\nexport {}`],
  },
  {
    rule: 'classesOnlyForErrors',
    path: 'src/kernel/a.ts',
    bad: [`export class Manager {}`, `const a = class {}`, `class Book extends Map<string, string> {}`],
    good: [`export class Refusal extends Error {}`, `const a = { class: row.class }`],
  },
  {
    rule: 'environment',
    path: 'src/kernel/a.ts',
    bad: [
      `const a = process.env.HOME`,
      `const { HOME } = process?.env`,
      `const a = process['env']`,
      `import { env } from 'node:process'`,
    ],
    good: [`const a = process.pid\nconst says = 'process.env'`],
  },
  { rule: 'environment', path: 'src/config.ts', good: [`export const a = process.env.HOME`] },
  {
    rule: 'noSleep',
    path: 'test/journeys/a.test.ts',
    bad: [
      `await new Promise((resolve) => setTimeout(resolve, 100))`,
      `const sleep = (ms: number) => new Promise<void>((done) => { setTimeout(done, ms) })`,
      `import { setTimeout as sleep } from 'node:timers/promises'\nawait sleep(100)`,
      `import { scheduler } from 'node:timers/promises'\nawait scheduler.wait(100)`,
      `import { setTimeout } from 'node:timers/promises'\nwhile (open) close()\nawait setTimeout(100)`,
      `await promisify(setTimeout)(100)`,
    ],
    good: [
      `const timer = setTimeout(() => controller.abort(), 1_000)`,
      `import { setTimeout as delay } from 'node:timers/promises'\nawait Promise.race([close(), delay(5_000).then(fail)])`,
      `import { setTimeout as delay } from 'node:timers/promises'\nwhile (!(await done())) await delay(10)`,
      `import { setTimeout as delay } from 'node:timers/promises'\nfor (;;) {\n  if (await done()) break\n  await delay(10)\n}`,
    ],
  },
  {
    rule: 'noSleep',
    path: 'test/harness/eventually.ts',
    good: [`await new Promise((resolve) => setTimeout(resolve, 10))`],
  },
  {
    rule: 'honestTests',
    path: 'test/journeys/a.test.ts',
    bad: [
      `import { mock, test } from 'node:test'\nmock.method(venue, 'place')`,
      `test('a', (t) => t.mock.fn())`,
      `test.only('a', () => {})`,
      `test('a', { skip: true }, () => {})`,
      `describe.skip('a', () => {})`,
    ],
    good: [`import { test } from 'node:test'\ntest('a', { timeout: 1_000 }, (t) => t.mock.timers.tick(1))`],
  },
  {
    rule: 'comments',
    path: 'src/kernel/a.ts',
    bad: [`// TODO later`, `/* FIXME */`],
    good: [`const a = 'TODO'`],
  },
  {
    rule: 'custody',
    path: 'src/features/wallets/wallets.ts',
    bad: [`import { open } from './keystore.ts'`, `import { open } from './signer-evm.ts'`],
    good: [`import type { Keystore } from './keystore.ts'\nimport { row } from './store.ts'`],
  },
  {
    rule: 'custody',
    path: 'scripts/a.ts',
    bad: [`import { open } from '#features/wallets/keystore.ts'`],
  },
  {
    rule: 'custody',
    path: 'src/features/wallets/signer.ts',
    good: [`import { open } from './keystore.ts'`],
  },
  {
    rule: 'custody',
    path: 'src/compose/custody.ts',
    good: [`import { open } from '#features/wallets/keystore.ts'`],
  },
  {
    rule: 'receipt',
    path: 'src/features/swap/batch.ts',
    bad: [
      `const receipt = { id } as unknown as PolicyReceipt`,
      `const isReceipt = (value: unknown): value is PolicyReceipt => true`,
      `import type { PolicyReceipt as Receipt } from '#kernel/signer.ts'`,
      `export declare const receiptBrand: unique symbol`,
    ],
    good: [
      `declare const brand: unique symbol\nexport type Row = { [brand]: true }\nexport const sign = (receipt: PolicyReceipt): Promise<PolicyReceipt> => send(receipt)`,
    ],
  },
  {
    rule: 'receipt',
    path: 'src/features/policy/receipt.ts',
    good: [`export const receipt = (id: string) => ({ id }) as PolicyReceipt`],
  },
  {
    rule: 'poolInAct',
    path: 'src/features/policy/operations.ts',
    bad: [
      `const kill = async (input, { userId }, { tx }) => {\n  await store.setSwitch(tx, userId)\n  return store.switchOf(db, userId)\n}`,
      `const kill = (input, caller, request) => within(request, async (tx) => {\n  await lock(tx)\n  return send(pool, 'select 1')\n})`,
      `async function kill(tx: Tx, userId: string) {\n  return db.query('select 1')\n}`,
      `const kill = async (tx: Tx) => send(needs.db, 'select 1')`,
      `const keeper = { async reserve(tx, action) {\n  return one(\n    transactions.pool,\n    text,\n  )\n} }`,
    ],
    good: [
      `const show = async (_input, { userId }) => view(db, userId)`,
      `const kill = async (input, caller, { tx }) => {\n  const db = tx ?? pool\n  return send(db, 'select 1')\n}`,
      `const read = (db: Queryable, id: string) => one(db, id)\nconst kill = async (tx: Tx) => read(tx, 'a')`,
      `const kill = (input, caller, request) => within(request, async (tx) => {\n  switchOn({ on: true })\n  return send(tx, 'select 1')\n})`,
    ],
  },
  {
    rule: 'shortage',
    path: 'src/features/perp/fund.ts',
    bad: [
      `throw new Fault('insufficient_balance', 'Too little')`,
      `throw new Fault(\n  "insufficient_balance",\n  'Too little',\n  { extras: { required_units: '1' } },\n)`,
    ],
    good: [
      `throw insufficientBalance(token, { required, available })`,
      `const faults = ['insufficient_balance']\nthrow new Fault('no_position', 'None')`,
    ],
  },
  {
    rule: 'parameters',
    path: 'src/durable/place.ts',
    bad: [
      `export const place = (order: Order, isLast: boolean) => send(order, isLast)`,
      `export function place(order: Order, isLast?: boolean): void {}`,
      `export async function place(\n  order: Order,\n  isLast = false,\n): Promise<Map<string, Order>> {\n  return new Map()\n}`,
      `export type Place = (order: Order, isLast: boolean | undefined) => void`,
      `type Deps = { run: (isLast: boolean) => void }`,
      `export const steps = { place(order: Order, isLast: boolean): void {} }`,
      `export function place(a: string, b: string, c: string, d: string, e: string): void {}`,
      `export const place = <T>(a: T, { b }: { b: T }, c: Map<T, T>, d = [1, 2], ...e: T[]): T => a`,
    ],
    good: [
      `export const place = (order: Order, { isLast = false }: { isLast?: boolean } = {}) => send(order, isLast)`,
      `export const isLast = (order: Order): boolean => order.rest === 0`,
      `export function place(a: Map<string, boolean>, [b, c]: [string, boolean], d: string, e: string): void {}`,
      `function assertRule(holds: boolean, rule: string): asserts holds {\n  if (!holds) throw new Error(rule)\n}`,
      `const placed = order ? place(1, 2, 3, 4, 5) : false\nif (place(1, 2, 3, 4, 5)) {\n  send()\n}`,
      `const answers = { place: [true, false], rest: (rows) => rows.map((row, at) => row.at === at) }`,
    ],
  },
]

export const ruleFixtures: RuleFixture[] = [...imports, ...shapes]

/** The same for SQL and documents. */
export const textFixtures: Omit<RuleFixture, 'rule'>[] = [
  {
    path: 'src/store/migrations/a.sql',
    bad: [
      'create table a (\n  lifted_by text\n);',
      '-- Whoever placed it.\ncreate table a ();',
      'drop table outbox;',
    ],
    good: ['-- It may also lift the text.\ncreate table a (unfrozen_by text);'],
  },
  {
    path: 'docs/a.md',
    bad: ['A stop.\nThe user is told.', 'The column `agreed_ms`.'],
    good: ['The user is notified of the column `unfrozen_by`, also later.'],
  },
]
