/** P11: from the command to ready, compared with the start of a bare Fastify. */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { launch } from '../test/harness/gateway.ts'
import { createEnvironment, startServer } from './support/environment.ts'
import { median, report } from './support/measure.ts'

const runs = 5
const worldRuns = 3

await using environment = await createEnvironment()
const databaseUrl = await environment.newDatabase('start')
const world = await environment.world()
const env = { ...world, DATABASE_URL: databaseUrl, DATA_DIR: environment.newFolder('gateway') }

const timed = async (settings: Record<string, string>): Promise<number> => {
  const startedMs = performance.now()
  await using gateway = await launch({ env: settings, readyMsMax: 90_000 })
  const ms = performance.now() - startedMs
  await gateway.stop()
  return ms
}
const bare = async () => {
  await using fastify = await startServer('fastify-server.ts')
  return fastify.startMs
}
const clearCompileCache = () => rmSync(join(env.DATA_DIR, 'compile-cache'), { recursive: true, force: true })

const found = { bare: [] as number[], cold: [] as number[], warm: [] as number[] }
await bare()
for (let run = 0; run < runs; run++) {
  found.bare.push(await bare())
  clearCompileCache()
  found.cold.push(await timed(env))
  found.warm.push(await timed(env))
}
const wholeWorld = { bare: [] as number[], first: [] as number[], later: [] as number[] }
for (let run = 0; run < worldRuns; run++) {
  const DATA_DIR = environment.newFolder(`whole-${run}`)
  wholeWorld.bare.push(await bare())
  wholeWorld.first.push(await timed({ DATA_DIR }))
  wholeWorld.later.push(await timed({ DATA_DIR }))
}

const ratios = (ours: number[], base: number[]) => ours.map((ms, run) => ms / base[run]!)
const annex = (ours: number[], base: number[]) => ({
  ours_seconds: Number((median(ours) / 1_000).toFixed(2)),
  fastify_seconds: Number((median(base) / 1_000).toFixed(2)),
})
report({
  id: 'P11',
  name: 'gateway alone to ready, to bare Fastify (code compiled before)',
  goal: '<= 3 (0.6 s beside 0.2 s)',
  ratios: ratios(found.warm, found.bare),
  met: (value) => value <= 3,
  annex: annex(found.warm, found.bare),
})
report({
  id: 'P11a',
  name: 'gateway alone to ready, to bare Fastify (nothing compiled yet)',
  goal: '<= 3 (0.6 s beside 0.2 s)',
  ratios: ratios(found.cold, found.bare),
  met: (value) => value <= 3,
  annex: annex(found.cold, found.bare),
})
report({
  id: 'P11b',
  name: 'whole world to ready on a later start, to bare Fastify',
  goal: '<= 15 (3 s beside 0.2 s)',
  ratios: ratios(wholeWorld.later, wholeWorld.bare),
  met: (value) => value <= 15,
  annex: annex(wholeWorld.later, wholeWorld.bare),
})
report({
  id: 'P11c',
  name: 'whole world to ready on the first start, to bare Fastify',
  goal: '<= 15 (3 s beside 0.2 s)',
  ratios: ratios(wholeWorld.first, wholeWorld.bare),
  met: (value) => value <= 15,
  annex: annex(wholeWorld.first, wholeWorld.bare),
})
