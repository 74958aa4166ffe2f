/**
 * Loaded by `--import` into a gateway and the processes of its world: they run at another time, in which the deadlines of
 * a saved data folder have not passed. The offset is the query of this file's URL.
 */
const offsetMs = Number(new URL(import.meta.url).searchParams.get('ms'))
const SystemDate = Date
const now = () => SystemDate.now() + offsetMs

globalThis.Date = new Proxy(SystemDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  apply: () => new SystemDate(now()).toString(),
  get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
})

export {}
