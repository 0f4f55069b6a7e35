import { testLanguage } from '../contract';
import { rust } from './language';

testLanguage(rust);
