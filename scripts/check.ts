/** `npm run check`: every check that does not run the product. */
import { spawn } from 'node:child_process'
import { cleanEnvironment, nodeFlags, root } from './environment.ts'

type Verdict = { passed: boolean; output: string }
type Step = { name: string; run: () => Promise<Verdict> }

const command = (file: string, args: string[]): Promise<Verdict> =>
  new Promise((resolve) => {
    const child = spawn(file, args, {
      cwd: root,
      env: cleanEnvironment(),
      shell: process.platform === 'win32',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('error', (error) => resolve({ passed: false, output: error.message }))
    child.on('close', (code) => resolve({ passed: code === 0, output: Buffer.concat(chunks).toString() }))
  })

const node = (...args: string[]) => command(process.execPath, [...nodeFlags, ...args])

/** Each compares the file that it writes. */
const generators = [
  ['openapi', 'scripts/openapi.ts'],
  ['settings', 'scripts/env-example.ts'],
  ['mistakes', 'scripts/mistakes.ts'],
  ['chat grammar', 'scripts/chat-grammar.ts'],
  ['decisions', 'scripts/decisions.ts'],
  ['additions', 'scripts/additions.ts'],
] as const

const steps: Step[] = [
  // Named by its path: other packages bring a slower `tsc` of their own.
  {
    name: 'types',
    run: () => node('node_modules/typescript-native/bin/tsc', '--noEmit', '--pretty', 'false'),
  },
  { name: 'style', run: () => command('biome', ['ci', '--colors=off']) },
  {
    name: 'architecture',
    run: () => node('--test', '--test-isolation=none', '--test-reporter=spec', 'test/architecture.test.ts'),
  },
  { name: 'lockfile', run: () => node('scripts/lockfile.ts', '--check') },
  { name: 'migrations', run: () => node('scripts/migration-checksums.ts', '--check') },
  { name: 'mutations', run: () => node('test/mutations/run.ts', '--check') },
  ...generators.map(([name, script]) => ({ name, run: () => node(script, '--check') })),
]

const verdicts = await Promise.all(
  steps.map(async ({ name, run }) => {
    const startMs = performance.now()
    const verdict = await run()
    const seconds = ((performance.now() - startMs) / 1_000).toFixed(1)
    console.log(`${name.padEnd(14)}${verdict.passed ? 'passed' : 'FAILED'}  ${seconds} s`)
    return { name, ...verdict }
  }),
)

for (const { name, output } of verdicts.filter(({ passed }) => !passed))
  console.log(`\n${name}\n${output.trim()}`)
if (verdicts.some(({ passed }) => !passed)) process.exitCode = 1
