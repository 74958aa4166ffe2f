/**
 * `npm run test:mutations`: plants each mistake into a copy of the tree, one at a time, and demands that one of its
 * tests fails. `-- <word>...` runs those whose file, sentence and tests contain every word; `-- --check` runs nothing
 * and only verifies that each snippet occurs exactly once in its file and that its tests exist.
 */
import { spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cleanEnvironment, nodeFlags, root } from '../../scripts/environment.ts'
import { startTestCluster } from '../harness/cluster.ts'
import { agentLinkMutations } from './agent-links.ts'
import { agentServiceMutations } from './agent-service.ts'
import { chainMutations } from './chains.ts'
import { chatMutations } from './chat.ts'
import { chatBudgetMutations } from './chat-budget.ts'
import { chatModelMutations } from './chat-model.ts'
import { creditMutations } from './credits.ts'
import { durableMutations } from './durable.ts'
import { endedAccessMutations } from './ended-access.ts'
import { executionMutations } from './executions.ts'
import { grammarMutations } from './grammar.ts'
import { identityMutations } from './identity.ts'
import { imageMutations } from './images.ts'
import { interfaceMutations } from './interface.ts'
import { marketMutations } from './market.ts'
import { modelMutations } from './model.ts'
import type { Mutation } from './mutation.ts'
import { numberMutations } from './numbers.ts'
import { orderMutations } from './orders.ts'
import { personMailMutations } from './person-mails.ts'
import { policyMutations } from './policy-and-custody.ts'
import { scheduleMutations } from './schedules.ts'
import { providerMutations } from './second-provider.ts'
import { securityMutations } from './security.ts'
import { signInMutations } from './sign-in.ts'
import { solanaMutations } from './solana.ts'
import { strategyMutations } from './strategies.ts'
import { subscriptionMutations } from './subscriptions.ts'
import { timeMutations } from './time.ts'
import { venueMutations } from './venue.ts'
import { webhookMutations } from './webhooks.ts'

export const mutations: readonly Mutation[] = [
  ...numberMutations,
  ...policyMutations,
  ...agentLinkMutations,
  ...personMailMutations,
  ...securityMutations,
  ...agentServiceMutations,
  ...chatMutations,
  ...chatBudgetMutations,
  ...chatModelMutations,
  ...strategyMutations,
  ...scheduleMutations,
  ...creditMutations,
  ...providerMutations,
  ...identityMutations,
  ...signInMutations,
  ...endedAccessMutations,
  ...webhookMutations,
  ...timeMutations,
  ...modelMutations,
  ...imageMutations,
  ...subscriptionMutations,
  ...chainMutations,
  ...solanaMutations,
  ...venueMutations,
  ...orderMutations,
  ...durableMutations,
  ...executionMutations,
  ...interfaceMutations,
  ...grammarMutations,
  ...marketMutations,
]

/** A test that hangs over a mistake has found it; one that is only slow must not count as that. */
const testMsMax = 300_000
const copied = [
  'src',
  'world',
  'test',
  'scripts',
  'package.json',
  'tsconfig.json',
  'docs',
  'README.md',
  '.env.example',
]

const occurrences = (text: string, part: string) => text.split(part).length - 1

const isFile = (file: string) => existsSync(join(root, file))
const readIfPresent = (file: string) => (isFile(file) ? readFileSync(join(root, file), 'utf8') : undefined)

/** One sentence for each mutation that no longer fits the code. */
export function staleMutations(list: readonly Mutation[], read = readIfPresent): string[] {
  return list.flatMap(({ file, find, replace, mistake, tests }) => {
    if (find === replace) return [`"${mistake}" changes nothing`]
    const text = read(file)
    if (text === undefined) return [`"${mistake}": there is no ${file}`]
    const count = occurrences(text, find)
    if (count !== 1)
      return [`"${mistake}": its snippet occurs ${count} times in ${file}, and must occur once`]
    return tests.filter((test) => !isFile(test)).map((test) => `"${mistake}": there is no test ${test}`)
  })
}

/** The tree in which mistakes are planted, and the server of its test databases. */
type Copy = { path: string; databaseUrl: string | undefined }
type Verdict = 'passed' | 'failed' | 'hung'

async function runTest(
  { path: copy, databaseUrl }: Copy,
  file: string,
): Promise<{ verdict: Verdict; output: string }> {
  const words = [...nodeFlags, '--test', '--test-isolation=none', '--test-reporter=tap', file]
  const child = spawn(process.execPath, words, {
    cwd: copy,
    env: cleanEnvironment(databaseUrl === undefined ? {} : { PORTICO_TEST_DATABASE_URL: databaseUrl }),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  let isHung = false
  const timer = setTimeout(() => {
    isHung = true
    // The whole group: gateways and worlds of the test as well.
    process.kill(-child.pid!, 'SIGKILL')
  }, testMsMax)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  return {
    verdict: isHung ? 'hung' : code === 0 ? 'passed' : 'failed',
    output: Buffer.concat(chunks).toString(),
  }
}

function copyOfTree(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'portico-mutations-'))
  // The account that runs the database for root needs access.
  chmodSync(path, 0o711)
  for (const name of copied) cpSync(join(root, name), join(path, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }) }
}

/** Without a mistake each test must pass, or its failure would prove nothing. */
async function assertTestsPass(copy: Copy, list: readonly Mutation[]): Promise<void> {
  for (const file of new Set(list.flatMap(({ tests }) => tests))) {
    // A busy machine may fail a test once; a second failure has another cause than the machine.
    const first = await runTest(copy, file)
    const { verdict, output } = first.verdict === 'passed' ? first : await runTest(copy, file)
    if (verdict !== 'passed')
      throw new Error(`${file} ${verdict} without any mistake:\n${output.slice(-4_000)}`)
  }
}

async function findFailingTest(
  copy: Copy,
  { file, find, replace, tests }: Mutation,
): Promise<string | undefined> {
  const path = join(copy.path, file)
  const original = readFileSync(path, 'utf8')
  writeFileSync(
    path,
    original.replace(find, () => replace),
  )
  try {
    for (const test of tests) {
      const { verdict } = await runTest(copy, test)
      if (verdict !== 'passed') return test
    }
    return undefined
  } finally {
    writeFileSync(path, original)
  }
}

const needsDatabase = ({ tests }: Mutation) => tests.some((file) => file.startsWith('test/'))

async function main(words: readonly string[]): Promise<void> {
  const problems = staleMutations(mutations)
  for (const problem of problems) console.log(problem)
  if (problems.length > 0)
    throw new Error(`${problems.length} of ${mutations.length} mutations do not fit the code`)
  if (words[0] === '--check') return console.log(`${mutations.length} mutations fit the code`)
  const wanted = mutations.filter(({ file, mistake, tests }) =>
    words.every((word) => [file, mistake, ...tests].some((text) => text.includes(word))),
  )
  using tree = copyOfTree()
  await using parts = new AsyncDisposableStack()
  // Tests beside their file need no database.
  const cluster = wanted.some(needsDatabase) ? await startTestCluster() : undefined
  if (cluster) parts.defer(() => cluster.stop())
  const copy = { path: tree.path, databaseUrl: cluster?.url }
  await assertTestsPass(copy, wanted)
  const survived: Mutation[] = []
  for (const mutation of wanted) {
    const startedMs = performance.now()
    const finder = await findFailingTest(copy, mutation)
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1).padStart(6)
    console.log(`${finder ? 'caught  ' : 'SURVIVED'} ${seconds} s  ${mutation.file}: ${mutation.mistake}`)
    if (!finder) survived.push(mutation)
  }
  console.log(
    `${wanted.length - survived.length} of ${wanted.length} mistakes were found, ${survived.length} survived`,
  )
  if (survived.length > 0) process.exitCode = 1
}

if (import.meta.main)
  await main(process.argv.slice(2)).catch((error: Error) => {
    console.error(error.message)
    process.exitCode = 1
  })
