/** Data folders that earlier releases left, with open tasks, positions and orders, are started by this one. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { addressOfContract, contractFiles } from '#world/polymarket/chain/artifacts.ts'
import { dataFolder, launch } from '../harness/gateway.ts'
import { worldOf } from '../journeys/world.ts'
import { unpackFolder } from './folder-file.ts'
import { checkFolder, type Expected } from './scenario.ts'

const folders = join(import.meta.dirname, 'folders')
const names = readdirSync(folders).filter((name) => name.endsWith('.folder.br'))

/** The deadlines of the folder's tasks have passed since then. */
const optionsAt = (atMs: number): string => {
  const clock = pathToFileURL(join(import.meta.dirname, 'shifted-clock.ts'))
  clock.searchParams.set('ms', String(atMs - Date.now()))
  return [process.env.NODE_OPTIONS, `--import=${clock}`].filter(Boolean).join(' ')
}

/** Folders from before the prediction market lack its contracts. */
const assertContracts = async (control: string): Promise<void> => {
  const { rpc, manifest } = await worldOf(control)
  for (const file of contractFiles) {
    const code = await rpc('eth_getCode', [addressOfContract(file), 'latest'], manifest.urls.evm['137'])
    assert.notEqual(code, '0x', file)
  }
}

test('there is a folder to start', () => assert.ok(names.length > 0))

for (const name of names)
  test(`${name} is started: its tasks end, its keys replay, its positions and orders are the same`, async () => {
    using folder = dataFolder()
    const expected = await unpackFolder<Expected>(readFileSync(join(folders, name)), folder.path)
    await using gateway = await launch({
      env: { DATA_DIR: folder.path, NODE_OPTIONS: optionsAt(expected.savedAtMs) },
    })
    const control = gateway.lines.find((line) => line.startsWith('world '))!.split(/\s+/)[1]!
    await assertContracts(control)
    await checkFolder(gateway, control, expected)
  })
