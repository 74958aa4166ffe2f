/**
 * `node scripts/with-node.cjs test/upgrade/make-folder.ts`: saves a small data folder of this release in
 * test/upgrade/folders, which every later release must start. Run it for each release.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { release } from '#release.ts'
import { dataFolder, eventually, launch } from '../harness/gateway.ts'
import { processesOf } from '../harness/processes.ts'
import { packFolder } from './folder-file.ts'
import { fillFolder } from './scenario.ts'

const folders = join(import.meta.dirname, 'folders')
async function main(): Promise<void> {
  using folder = dataFolder()
  const gateway = await launch({ env: { DATA_DIR: folder.path } })
  const control = gateway.lines.find((line) => line.startsWith('world '))!.split(/\s+/)[1]!
  const expected = await fillFolder(gateway, control).finally(() => gateway.stop())
  await eventually(async () => processesOf(folder.path).length === 0 || undefined, 'everything ended')
  const packed = await packFolder(folder.path, expected)
  mkdirSync(folders, { recursive: true })
  const day = new Date(expected.savedAtMs).toISOString().slice(0, 10)
  const path = join(folders, `${release}-${day}.folder.br`)
  writeFileSync(path, packed)
  console.log(
    `${packed.length} bytes in ${path}: ${expected.done.length} ended and ${expected.openIds.length} open tasks`,
  )
}

void main()
