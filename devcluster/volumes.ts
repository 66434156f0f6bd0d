import type { V1PersistentVolumeSpec } from '@kubernetes/client-node'
import type { Logger } from 'pino'
import { type PersistentVolumeClaim, persistentVolumeClaims } from '../src/api/core.ts'
import type { KubeClient } from '../src/kube/client.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { keyOf, type KubeObject, type Resource } from '../src/kube/object.ts'
import type { Clock } from '../src/runtime/clock.ts'
import { type Outcome, runController } from '../src/runtime/controller.ts'
import { createReflector } from '../src/runtime/reflector.ts'
import { WorkQueue } from '../src/runtime/work-queue.ts'

type PersistentVolume = KubeObject & { spec?: V1PersistentVolumeSpec; status?: { phase?: string } }
type StorageClass = KubeObject & { provisioner: string; reclaimPolicy: string; volumeBindingMode: string }

const persistentVolumes: Resource<PersistentVolume> = {
  group: '',
  version: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  namespaced: false,
}
const storageClasses: Resource<StorageClass> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
}

/** The default class of the dev cluster. */
export const storageClassName = 'simulated'
const provisioner = 'simulated-kubelet/volumes'

export interface VolumeOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly log: Logger
}

const done: Outcome = { kind: 'done' }

/** Makes the default StorageClass, unless it is there. */
export async function createStorageClass(client: KubeClient): Promise<void> {
  await client
    .create(storageClasses, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: storageClassName, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner,
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'Immediate',
    })
    .catch(unless('AlreadyExists'))
}

/**
 * Plays the provisioner until `signal` ends: makes up a volume for each claim of the class, which the controller
 * manager then binds, and deletes released ones.
 */
export async function runProvisioner({ client, clock, log }: VolumeOptions, signal: AbortSignal): Promise<void> {
  const claims = createReflector({ client, clock, log, resource: persistentVolumeClaims })
  const volumes = createReflector({ client, clock, log, resource: persistentVolumes })
  const wanted = new WorkQueue({ clock })
  const released = new WorkQueue({ clock })
  claims.onChange(({ kind, object }) => {
    if (kind !== 'deleted' && isWanted(object)) wanted.add(keyOf(object))
  })
  volumes.onChange(({ kind, object }) => {
    if (kind !== 'deleted' && isReleased(object)) released.add(keyOf(object))
  })

  const provision = async (key: string): Promise<Outcome> => {
    const claim = claims.store.get(key)
    if (claim && isWanted(claim)) {
      await client.create(persistentVolumes, volumeFor(claim)).catch(unless('AlreadyExists'))
    }
    return done
  }
  const reclaim = async (key: string): Promise<Outcome> => {
    await client.delete(persistentVolumes, { name: key }).catch(unless('NotFound'))
    return done
  }
  const common = { concurrency: 8, clock, log }
  await Promise.all([
    claims.run(signal),
    volumes.run(signal),
    runController({ name: 'provisioner', queue: wanted, reconcile: provision, ...common }, signal),
    runController({ name: 'reclaimer', queue: released, reconcile: reclaim, ...common }, signal),
  ])
  for (const queue of [wanted, released]) queue.clearDelayed()
}

function isWanted({ metadata, spec }: PersistentVolumeClaim): boolean {
  return spec?.storageClassName === storageClassName && !spec.volumeName && metadata.deletionTimestamp === undefined
}

function isReleased({ metadata, spec, status }: PersistentVolume): boolean {
  const isOurs = spec?.storageClassName === storageClassName
  return isOurs && status?.phase === 'Released' && metadata.deletionTimestamp === undefined
}

function volumeFor({ metadata, spec }: PersistentVolumeClaim): PersistentVolume {
  const name = `pvc-${metadata.uid}`
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    // With a provisioner that it does not know, the controller manager leaves the deletion to that one: to us.
    metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': provisioner } },
    spec: {
      storageClassName,
      persistentVolumeReclaimPolicy: 'Delete',
      capacity: { storage: spec?.resources?.requests?.['storage'] ?? '1Gi' },
      accessModes: spec?.accessModes ?? ['ReadWriteOnce'],
      ...(spec?.volumeMode && { volumeMode: spec.volumeMode }),
      claimRef: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        namespace: metadata.namespace ?? '',
        name: metadata.name ?? '',
        uid: metadata.uid ?? '',
      },
      // No node ever mounts it. A host path is the kind of volume that nobody has to attach.
      hostPath: { path: `/simulated/${name}` },
    },
  }
}

function unless(...codes: ('AlreadyExists' | 'NotFound')[]): (error: unknown) => void {
  return (error) => {
    if (!isKubeError(error, ...codes)) throw error
  }
}
