import { contractFor } from '../../contract/lock-contract';
import { glideCluster } from '../../support/glide-kinds';

contractFor(glideCluster);
