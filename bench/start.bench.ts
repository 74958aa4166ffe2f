/** P11: from the command to ready, beside the start of a bare Fastify. */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { launch } from '../test/harness/gateway.ts'
import { median, report } from './support/measure.ts'
import { serve, stage } from './support/stage.ts'

const runs = 5
const worldRuns = 3

await using ground = await stage()
const databaseUrl = await ground.database('start')
const world = await ground.world()
const env = { ...world, DATABASE_URL: databaseUrl, DATA_DIR: ground.fresh('gateway') }

const timed = async (settings: Record<string, string>): Promise<number> => {
  const startedMs = performance.now()
  await using gateway = await launch({ env: settings, readyMsMax: 90_000 })
  const ms = performance.now() - startedMs
  await gateway.stop()
  return ms
}
const bare = async () => {
  await using fastify = await serve('fastify-server.ts')
  return fastify.startMs
}
const forgetCode = () => rmSync(join(env.DATA_DIR, 'compile-cache'), { recursive: true, force: true })

const found = { bare: [] as number[], cold: [] as number[], warm: [] as number[] }
await bare()
for (let run = 0; run < runs; run++) {
  found.bare.push(await bare())
  forgetCode()
  found.cold.push(await timed(env))
  found.warm.push(await timed(env))
}
const whole = { bare: [] as number[], first: [] as number[], later: [] as number[] }
for (let run = 0; run < worldRuns; run++) {
  const DATA_DIR = ground.fresh(`whole-${run}`)
  whole.bare.push(await bare())
  whole.first.push(await timed({ DATA_DIR }))
  whole.later.push(await timed({ DATA_DIR }))
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
  ratios: ratios(whole.later, whole.bare),
  met: (value) => value <= 15,
  annex: annex(whole.later, whole.bare),
})
report({
  id: 'P11c',
  name: 'whole world to ready on the first start, to bare Fastify',
  goal: '<= 15 (3 s beside 0.2 s)',
  ratios: ratios(whole.first, whole.bare),
  met: (value) => value <= 15,
  annex: annex(whole.first, whole.bare),
})
